/*
 * An extension of somebody else, for tests/tests/server/sources/other_extensions.rs: tables whose names begin with
 * "hooked_" are read by a custom scan that needs this library's ExecutorRun hook, as distributed plans need that of Citus.
 *
 * Its planner takes the ORDER BY of a subquery on such a table away, unless it has a LIMIT or an OFFSET, as Citus sends it to each
 * shard.
 * hooked_transaction() is other than 0 when the transaction has used such a table, as Citus numbers transactions.
 *
 * The hook asks hooked_ids(), a function of the test, which ids there are; the scan gives the rows with these ids in their
 * first column. A scan that runs without the hook gives all rows, and a WARNING: that is what the tests look for.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "nodes/extensible.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

typedef struct HookedState
{
	CustomScanState css;
	TableScanDesc scan;
	bool		prepared;
	Bitmapset  *ids;
} HookedState;

static set_rel_pathlist_hook_type previous_pathlist = NULL;
/* the last argument of ExecutorRun, which PostgreSQL 18 has not any more */
#if PG_VERSION_NUM >= 180000
#define EXECUTE_ONCE(argument)
#else
#define EXECUTE_ONCE(argument) , argument
#endif

static ExecutorRun_hook_type previous_run = NULL;
static planner_hook_type previous_planner = NULL;
static int64 transaction = 0;

PG_FUNCTION_INFO_V1(hooked_transaction);

static Node *create_state(CustomScan *plan);
static Plan *plan_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *targets, List *clauses, List *children);
static void begin_scan(CustomScanState *node, EState *estate, int eflags);
static TupleTableSlot *exec_scan(CustomScanState *node);
static void end_scan(CustomScanState *node);
static void rescan(CustomScanState *node);

static CustomPathMethods path_methods = {.CustomName = "HookedScan", .PlanCustomPath = plan_path};
static CustomScanMethods scan_methods = {.CustomName = "HookedScan", .CreateCustomScanState = create_state};
static CustomExecMethods exec_methods = {
	.CustomName = "HookedScan",
	.BeginCustomScan = begin_scan,
	.ExecCustomScan = exec_scan,
	.EndCustomScan = end_scan,
	.ReScanCustomScan = rescan,
};

/* The only path to a table of ours. */
static void
set_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	CustomPath *path;

	if (previous_pathlist)
		previous_pathlist(root, rel, rti, rte);
	if (rte->rtekind != RTE_RELATION || rte->relkind != RELKIND_RELATION || rte->inh || IS_DUMMY_REL(rel) ||
		strncmp(get_rel_name(rte->relid), "hooked_", 7) != 0)
		return;
	path = makeNode(CustomPath);
	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = rel->reltarget;
	path->path.rows = rel->rows;
	path->path.total_cost = rel->pages * seq_page_cost + rel->tuples * cpu_tuple_cost;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->methods = &path_methods;
	rel->pathlist = NIL;
	rel->partial_pathlist = NIL;
	add_path(rel, &path->path);
}

static Plan *
plan_path(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *targets, List *clauses, List *children)
{
	CustomScan *scan = makeNode(CustomScan);

	scan->scan.plan.targetlist = targets;
	scan->scan.plan.qual = extract_actual_clauses(clauses, false);
	scan->scan.scanrelid = rel->relid;
	scan->flags = path->flags;
	scan->methods = &scan_methods;
	return &scan->scan.plan;
}

static Node *
create_state(CustomScan *plan)
{
	HookedState *state = (HookedState *) newNode(sizeof(HookedState), T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}

static void
begin_scan(CustomScanState *node, EState *estate, int eflags)
{
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	Relation	relation = node->ss.ss_currentRelation;

	/* PostgreSQL 15 has made a virtual slot, and what reads it: again, for the table's own */
	ExecInitScanTupleSlot(estate, &node->ss, RelationGetDescr(relation), table_slot_callbacks(relation));
	ExecAssignScanProjectionInfoWithVarno(&node->ss, plan->scan.scanrelid);
	node->ss.ps.qual = ExecInitQual(plan->scan.plan.qual, &node->ss.ps);
}

static TupleTableSlot *
next_row(ScanState *ss)
{
	HookedState *state = (HookedState *) ss;
	TupleTableSlot *slot = ss->ss_ScanTupleSlot;

	if (state->scan == NULL)
	{
		if (!state->prepared)
			ereport(WARNING, (errmsg("hooked scan runs without its ExecutorRun hook")));
		state->scan = table_beginscan(ss->ss_currentRelation, ss->ps.state->es_snapshot, 0, NULL);
	}
	while (table_scan_getnextslot(state->scan, ForwardScanDirection, slot))
	{
		bool		null;
		Datum		id = slot_getattr(slot, 1, &null);

		if (!state->prepared || (!null && bms_is_member(DatumGetInt32(id), state->ids)))
			return slot;
	}
	return ExecClearTuple(slot);
}

static bool
recheck(ScanState *ss, TupleTableSlot *slot)
{
	return true;
}

static TupleTableSlot *
exec_scan(CustomScanState *node)
{
	return ExecScan(&node->ss, next_row, recheck);
}

static void
end_scan(CustomScanState *node)
{
	HookedState *state = (HookedState *) node;

	if (state->scan != NULL)
		table_endscan(state->scan);
}

static void
rescan(CustomScanState *node)
{
	HookedState *state = (HookedState *) node;

	ExecScanReScan(&node->ss);
	if (state->scan != NULL)
		table_rescan(state->scan, NULL);
}

/* The ids that hooked_ids() gives, under the active snapshot, in the present memory context. */
static Bitmapset *
ids(void)
{
	MemoryContext caller = CurrentMemoryContext;
	Bitmapset  *result = NULL;

	if (SPI_connect() != SPI_OK_CONNECT || SPI_execute("SELECT * FROM hooked_ids()", true, 0) != SPI_OK_SELECT)
		elog(ERROR, "hooked: cannot ask hooked_ids()");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool		null;
		int32		id = DatumGetInt32(SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &null));
		MemoryContext spi = MemoryContextSwitchTo(caller);

		result = bms_add_member(result, id);
		MemoryContextSwitchTo(spi);
	}
	SPI_finish();
	return result;
}

/* Readies every scan of ours in a plan that is about to run. */
static bool
prepare(PlanState *state, void *context)
{
	if (state == NULL)
		return false;
	if (IsA(state, CustomScanState) && ((CustomScanState *) state)->methods == &exec_methods)
	{
		HookedState *hooked = (HookedState *) state;

		/* PostgreSQL's callers promise it, and 17 relies on it */
		if (!ActiveSnapshotSet() || GetActiveSnapshot() != state->state->es_snapshot)
			elog(ERROR, "hooked: the query's snapshot is not the active one");
		if (!hooked->prepared)
		{
			hooked->ids = ids();
			transaction = 1;
		}
		hooked->prepared = true;
	}
	return planstate_tree_walker(state, prepare, context);
}

/* The number of the transaction, as far as it has used a table of ours. */
Datum
hooked_transaction(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(transaction);
}

static void
end_transaction(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT)
		transaction = 0;
}

/* Does the query read a table of ours, and nothing else? */
static bool
reads_hooked(Query *query)
{
	RangeTblEntry *entry;

	if (list_length(query->jointree->fromlist) != 1 || list_length(query->rtable) != 1)
		return false;
	entry = linitial(query->rtable);
	return entry->rtekind == RTE_RELATION && strncmp(get_rel_name(entry->relid), "hooked_", 7) == 0;
}

/* Takes the order of subqueries away. */
static bool
send_to_shards(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, RangeTblEntry))
	{
		Query	   *query = ((RangeTblEntry *) node)->subquery;

		if (query != NULL && query->sortClause != NIL && query->limitCount == NULL && query->limitOffset == NULL &&
			reads_hooked(query))
			query->sortClause = NIL;
		return false;
	}
	if (IsA(node, CommonTableExpr))
	{
		Query	   *query = castNode(Query, ((CommonTableExpr *) node)->ctequery);

		if (query->sortClause != NIL && query->limitCount == NULL && query->limitOffset == NULL && reads_hooked(query))
			query->sortClause = NIL;
	}
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, send_to_shards, context, QTW_EXAMINE_RTES_BEFORE);
	return expression_tree_walker(node, send_to_shards, context);
}

static PlannedStmt *
plan_query(Query *query, const char *text, int options, ParamListInfo parameters)
{
	send_to_shards((Node *) query, NULL);
	if (previous_planner)
		return previous_planner(query, text, options, parameters);
	return standard_planner(query, text, options, parameters);
}

static void
run(QueryDesc *query, ScanDirection direction, uint64 count EXECUTE_ONCE(bool execute_once))
{
	MemoryContext caller = MemoryContextSwitchTo(query->estate->es_query_cxt);

	prepare(query->planstate, NULL);
	MemoryContextSwitchTo(caller);
	if (previous_run)
		previous_run(query, direction, count EXECUTE_ONCE(execute_once));
	else
		standard_ExecutorRun(query, direction, count EXECUTE_ONCE(execute_once));
}

void
_PG_init(void)
{
	RegisterCustomScanMethods(&scan_methods);
	previous_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = set_pathlist;
	previous_planner = planner_hook;
	planner_hook = plan_query;
	RegisterXactCallback(end_transaction, NULL);
	previous_run = ExecutorRun_hook;
	ExecutorRun_hook = run;
}
