-- Which sessions have background commands that run, without reading every log at a start. A query uses a part only when it
-- names the same condition, so there is one for each kind.
CREATE INDEX events_job_started ON events (session) WHERE kind = 'job_started';
CREATE INDEX events_job_ended ON events (session) WHERE kind = 'job_ended';
