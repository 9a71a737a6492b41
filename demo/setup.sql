-- What the other scripts of the demo need.

CREATE EXTENSION corgipile;

CREATE TABLE results (
  model text,
  strategy text,
  epochs int,
  accuracy float8,
  seconds_per_epoch float8,
  preparation_seconds float8,
  PRIMARY KEY (model, strategy, epochs)
);
