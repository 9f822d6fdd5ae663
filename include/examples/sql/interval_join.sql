-- Events of two services joined by token, a minute before or after each other: ../interval_join.py in SQL.

CREATE PIPELINE interval_join WITH (
  batch.interval = '1 hour',
  batch.start = '2024-01-01',
  stream.trigger = '1 second',
  stream.edge_every = '10 seconds',
  defaults = '2026-11',
  tags = ('example')
);

CREATE SOURCE gateway (
  token STRING NOT NULL,
  route STRING NOT NULL,
  at TIMESTAMP NOT NULL,
  WATERMARK FOR at AS at - INTERVAL '10 seconds'
) WITH (connector = 'kafka', topic = 'examples.gateway', idle_after = '1 minute');

CREATE SOURCE billing (
  token STRING NOT NULL,
  charged_cents BIGINT NOT NULL,
  at TIMESTAMP NOT NULL,
  WATERMARK FOR at AS at - INTERVAL '10 seconds'
) WITH (connector = 'kafka', topic = 'examples.billing', idle_after = '1 minute');

-- A charge counts for a request a minute before it or after it, whichever comes first.
CREATE DERIVED charged AS
SELECT *
FROM gateway
JOIN billing
  ON gateway.token = billing.token
  AND billing.at BETWEEN gateway.at - INTERVAL '60 seconds' AND gateway.at + INTERVAL '60 seconds';

CREATE VIEW by_route AS
SELECT
  gateway.route,
  count(*) AS charges,
  sum(billing.charged_cents) AS cents,
  count(left) AS requests,
  count(unmatched) AS uncharged
FROM charged
GROUP BY gateway.route, TUMBLE(gateway.at, INTERVAL '1 minute');

CREATE VIEW pairs AS
SELECT gateway.token, billing.charged_cents, count(*) AS n
FROM charged
GROUP BY gateway.token, billing.charged_cents, TUMBLE(gateway.at, INTERVAL '1 minute');

CREATE VIEW events AS
SELECT count(*) AS n
FROM (TABLE gateway UNION ALL TABLE billing)
GROUP BY TUMBLE(at, INTERVAL '1 minute');
