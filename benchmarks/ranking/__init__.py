"""How well sglb ranks, beside other libraries.

The protocol was fixed before any model was scored on a test query.

Queries  Each set has training, validation and test queries (`sets.py`): the official ones where
         there are any, of five official folds the first; otherwise by the order of the ids.
Tuning   Six settings of each method, drawn from a space of six dimensions (`methods/`). A trial
         is one Latin hypercube point for all methods, so that rates, l2 and shares are the same
         for all. It is fitted to the training queries, and scored on the validation queries by
         NDCG@10 after 10, 20, ..., 200 trees. The best trial and number of trees are frozen.
Test     The frozen setting is fitted to training and validation queries by five seeds, and scored
         on the test queries, once. Scores are kept by query.
Score    NDCG@10 with gains 2^y - 1, ties averaged, without queries that have no relevant row, by
         sglb's evaluator for all libraries.

Other parts: `defaults` (estimators without any setting), `length` (the rule of SGLBRanker's number
of trees, on training queries alone), `langevin` (chains of twice the tuned length), `long`
(the same of 450 trees with the default rate; added when the tuned chains had been seen), `matching`
(trained by one metric, scored by others) and `times`.
"""
