-- What is under way: the progress of trainings, and who reads with whom.

CREATE FUNCTION corgipile.progress(
    OUT pid int, OUT datid oid, OUT usesysid oid, OUT relid oid, OUT epoch int, OUT epochs_total int, OUT blocks_done bigint,
    OUT blocks_total bigint, OUT loss float8, OUT tuples bigint, OUT tuples_per_second float8, OUT started_at timestamptz,
    OUT estimated_end timestamptz
) RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL RESTRICTED ROWS 10
AS 'MODULE_PATHNAME', 'corgipile_progress_wrapper';
COMMENT ON FUNCTION corgipile.progress() IS 'the running trainings; those of other roles only for members of pg_read_all_stats';

CREATE VIEW corgipile.stat_progress_train AS
    SELECT p.pid, p.datid, d.datname, p.usesysid, pg_catalog.pg_get_userbyid(p.usesysid) AS usename,
           CASE WHEN d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database() THEN p.relid::pg_catalog.regclass::pg_catalog.text END AS relation,
           p.epoch, p.epochs_total, p.blocks_done, p.blocks_total, p.loss, p.tuples, p.tuples_per_second, p.started_at,
           p.estimated_end
      FROM corgipile.progress() AS p
      LEFT JOIN pg_catalog.pg_database AS d ON d.oid OPERATOR(pg_catalog.=) p.datid;
COMMENT ON VIEW corgipile.stat_progress_train IS 'one row per running corgipile_train(), corgipile_search() and corgipile_train_uda() in the server, at most 64; a search is shown as one training of all points, followed by the training of the best point';
COMMENT ON COLUMN corgipile.stat_progress_train.pid IS 'process id of the training session';
COMMENT ON COLUMN corgipile.stat_progress_train.datid IS 'its database';
COMMENT ON COLUMN corgipile.stat_progress_train.datname IS 'name of its database';
COMMENT ON COLUMN corgipile.stat_progress_train.usesysid IS 'the session''s user';
COMMENT ON COLUMN corgipile.stat_progress_train.usename IS 'name of the session''s user';
COMMENT ON COLUMN corgipile.stat_progress_train.relation IS 'the source table; NULL for a query, or in another database';
COMMENT ON COLUMN corgipile.stat_progress_train.epoch IS 'current epoch; 0 before the first one';
COMMENT ON COLUMN corgipile.stat_progress_train.epochs_total IS 'total number of epochs';
COMMENT ON COLUMN corgipile.stat_progress_train.blocks_done IS 'blocks read in this epoch; with several processes, those of this process';
COMMENT ON COLUMN corgipile.stat_progress_train.blocks_total IS 'blocks per epoch';
COMMENT ON COLUMN corgipile.stat_progress_train.loss IS 'loss of the last completed epoch';
COMMENT ON COLUMN corgipile.stat_progress_train.tuples IS 'tuples processed in all epochs, held-out rows included, without the current buffer';
COMMENT ON COLUMN corgipile.stat_progress_train.tuples_per_second IS 'rate since the start of the first epoch, without the current buffer';
COMMENT ON COLUMN corgipile.stat_progress_train.started_at IS 'when the training began';
COMMENT ON COLUMN corgipile.stat_progress_train.estimated_end IS 'estimated from the buffers processed so far; NULL before the first one. In the first epoch, the time to evaluate held-out rows is not included';
GRANT SELECT ON corgipile.stat_progress_train TO PUBLIC;

-- Groups of sessions that read a table together.

CREATE FUNCTION corgipile.shared_scans(
    OUT pid int, OUT datid oid, OUT usesysid oid, OUT relid oid, OUT scan_group int, OUT epoch bigint, OUT blocks bigint,
    OUT blocks_remaining bigint, OUT blocks_drawn bigint, OUT blocks_followed bigint
) RETURNS SETOF record
LANGUAGE c VOLATILE PARALLEL RESTRICTED ROWS 10
AS 'MODULE_PATHNAME', 'corgipile_shared_scans_wrapper';
COMMENT ON FUNCTION corgipile.shared_scans() IS 'the members of reading groups; those of other roles only for members of pg_read_all_stats';

CREATE VIEW corgipile.stat_shared_scans AS
    SELECT g.pid, g.datid, d.datname, g.usesysid, pg_catalog.pg_get_userbyid(g.usesysid) AS usename,
           CASE WHEN d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database() THEN g.relid::pg_catalog.regclass::pg_catalog.text END AS relation,
           g.scan_group, g.epoch, g.blocks, g.blocks_remaining, g.blocks_drawn, g.blocks_followed
      FROM corgipile.shared_scans() AS g
      LEFT JOIN pg_catalog.pg_database AS d ON d.oid OPERATOR(pg_catalog.=) g.datid;
COMMENT ON VIEW corgipile.stat_shared_scans IS 'one row per process that currently reads with shared_scan, at most 128 in 16 groups';
COMMENT ON COLUMN corgipile.stat_shared_scans.pid IS 'process id of the reading session';
COMMENT ON COLUMN corgipile.stat_shared_scans.relation IS 'the table that is read, for a partition the partitioned table; NULL in another database';
COMMENT ON COLUMN corgipile.stat_shared_scans.scan_group IS 'number of the group: its members read the same blocks of the same table';
COMMENT ON COLUMN corgipile.stat_shared_scans.epoch IS 'current epoch; 0 in the pass before the first one';
COMMENT ON COLUMN corgipile.stat_shared_scans.blocks IS 'blocks per epoch';
COMMENT ON COLUMN corgipile.stat_shared_scans.blocks_remaining IS 'blocks of this epoch that are not drawn yet';
COMMENT ON COLUMN corgipile.stat_shared_scans.blocks_drawn IS 'blocks that the process has drawn itself, in all epochs';
COMMENT ON COLUMN corgipile.stat_shared_scans.blocks_followed IS 'blocks that another member had drawn before, in all epochs';
GRANT SELECT ON corgipile.stat_shared_scans TO PUBLIC;
