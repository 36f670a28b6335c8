-- The tables and views of Sallyport's postgres sink.  `sallyport audit ship` makes them where
-- they are missing, if its role may; `sallyport audit ship --schema` prints this text.
--
-- Many gates write into one database: the log's name is the first half of each record's key.
-- A record is never changed.  A role that ships needs USAGE on the schema, and SELECT and INSERT
-- on sallyport.record; a role that searches, USAGE and SELECT:
--
--	GRANT USAGE ON SCHEMA sallyport TO shipper, reader;
--	GRANT SELECT, INSERT ON sallyport.record TO shipper;
--	GRANT SELECT ON ALL TABLES IN SCHEMA sallyport TO reader;

CREATE SCHEMA IF NOT EXISTS sallyport;

CREATE TABLE sallyport.record (
	log         text NOT NULL,
	seq         bigint NOT NULL,
	t           timestamptz,
	type        text NOT NULL,
	id          text,
	of          text,
	identity    text,
	owner       text,
	listener    text,
	op          text,
	class       text,
	method      text,
	path        text,
	object_kind text,
	object      text,
	object_id   text,
	profile     text,
	rule        text,
	verdict     text,
	would       text,
	reason      text,
	status      text,
	http        integer,
	cause       text,
	text        text,
	prev        text NOT NULL,
	h           text NOT NULL,
	record      jsonb,
	line        bytea NOT NULL,
	shipped     timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (log, seq)
);

COMMENT ON TABLE sallyport.record IS 'Records of the audit logs of gates; line is the evidence, the rest is taken from it.';
COMMENT ON COLUMN sallyport.record.record IS 'The line as JSON; null where it is too deep to be read as such.';

CREATE INDEX record_t ON sallyport.record (t);
CREATE INDEX record_id ON sallyport.record (id);
CREATE INDEX record_of ON sallyport.record (of) WHERE of IS NOT NULL;
CREATE INDEX record_identity ON sallyport.record (identity, t);
CREATE INDEX record_object ON sallyport.record (object, t) WHERE object IS NOT NULL;
CREATE INDEX record_denied ON sallyport.record (reason, t) WHERE verdict = 'deny';
CREATE INDEX record_type ON sallyport.record (type, t);

-- Each decision with what became of it.
CREATE VIEW sallyport.decisions AS
	SELECT d.log, d.seq, d.t, d.id, d.identity, d.owner, d.listener, d.op, d.class, d.object_kind, d.object,
	       d.profile, d.rule, d.verdict, d.would, d.reason, o.status, o.http, o.seq AS outcome_seq,
	       o.type = 'outcome_unknown' AS outcome_unknown
	FROM sallyport.record d
	LEFT JOIN sallyport.record o
	       ON o.of = d.id AND o.log = d.log AND o.type IN ('outcome', 'outcome_unknown')
	WHERE d.type = 'decision';

-- What was refused, reads as well, by reason.
CREATE VIEW sallyport.denials AS
	SELECT reason, rule, profile, identity, op, log, count(*) AS times, min(t) AS first, max(t) AS last
	FROM sallyport.record
	WHERE verdict = 'deny'
	GROUP BY reason, rule, profile, identity, op, log;

CREATE VIEW sallyport.who_did_what AS
	SELECT identity, owner, op, object_kind, object, log,
	       count(*) FILTER (WHERE verdict = 'allow') AS allowed,
	       count(*) FILTER (WHERE verdict = 'deny') AS denied,
	       min(t) AS first, max(t) AS last
	FROM sallyport.record
	WHERE type IN ('decision', 'read', 'admin') AND verdict IS NOT NULL
	GROUP BY identity, owner, op, object_kind, object, log;

-- Each use of an exception.
CREATE VIEW sallyport.exceptions AS
	SELECT r.log, r.seq, r.t, r.identity, r.op, r.object, r.profile, e ->> 'rule' AS rule,
	       e ->> 'reason' AS reason, e ->> 'field' AS field, e ->> 'owner' AS owner,
	       e ->> 'ticket' AS ticket, e ->> 'expires' AS expires
	FROM sallyport.record r
	CROSS JOIN LATERAL jsonb_array_elements(
		CASE WHEN jsonb_typeof(r.record -> 'exceptions') = 'array' THEN r.record -> 'exceptions' ELSE '[]' END) AS e
	WHERE r.record ? 'exceptions';

-- What somebody should have looked at.
CREATE VIEW sallyport.alarms AS
	SELECT log, seq, t, type, cause, reason, identity, op, object, text
	FROM sallyport.record
	WHERE type IN ('log_alarm', 'gate_recover', 'policy_reject', 'worker_lost', 'outcome_unknown', 'observed',
	               'observed_gap', 'clock_step');

-- Of each log: is everything here?  missing and broken are 0; first is 0 where nothing was pruned before.
CREATE VIEW sallyport.completeness AS
	SELECT log, min(seq) AS first, max(seq) AS last, count(*) AS records,
	       max(seq) - min(seq) + 1 - count(*) AS missing,
	       count(*) FILTER (WHERE before_seq = seq - 1 AND before_h <> prev) AS broken,
	       max(t) AS newest, max(shipped) AS shipped
	FROM (SELECT log, seq, t, prev, shipped, lag(seq) OVER w AS before_seq, lag(h) OVER w AS before_h
	      FROM sallyport.record WINDOW w AS (PARTITION BY log ORDER BY seq)) r
	GROUP BY log;

-- Records whose line is not what its own hash says (FORMAT.md, The hash); there should be none.
CREATE VIEW sallyport.altered AS
	SELECT log, seq
	FROM sallyport.record
	WHERE encode(sha256('\x00'::bytea || substr(line, 1, length(line) - 72)), 'hex') <> h
	   OR convert_from(substr(line, length(line) - 65, 64), 'SQL_ASCII') <> h;
