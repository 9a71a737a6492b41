-- The three operators at work: SGD pulls shuffled buffers, TupleShuffle fills them from blocks, BlockShuffle reads blocks
-- of contiguous pages in random order.

\pset tuples_only on
\pset format unaligned

EXPLAIN (ANALYZE, COSTS OFF)
SELECT * FROM corgipile_train(:'table', model => 'logistic', learning_rate => 0.001, max_epochs => 3, seed => 42,
                              options => :'options');
