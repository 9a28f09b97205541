-- Derived, apart from `entry`: how many tokens each entry costs in a request, counted
-- once per encoding by whoever builds one, so that a budget is a sum and not a count.
-- Can be emptied at any time; what is missing is counted again.
CREATE TABLE throughline.token_count (
    owner text COLLATE "C" NOT NULL,
    log bigint NOT NULL,
    seq bigint NOT NULL,
    encoding text COLLATE "C" NOT NULL,
    tokens bigint NOT NULL,
    PRIMARY KEY (owner, log, seq, encoding)
);

SELECT throughline.guard('throughline.token_count');
