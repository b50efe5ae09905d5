-- A database of schema 0001, the first, as `sqlite3 annotruth.db .dump` writes it.
BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE alert (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	project INTEGER NOT NULL, 
	created BIGINT NOT NULL, 
	kind TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	text TEXT NOT NULL, 
	detail JSON NOT NULL, 
	seen BOOLEAN NOT NULL, 
	FOREIGN KEY(project) REFERENCES project (id)
);
CREATE TABLE annotator_history (
	project INTEGER NOT NULL, 
	annotator TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	created BIGINT NOT NULL, 
	n_labels INTEGER NOT NULL, 
	reliability FLOAT, 
	low FLOAT, 
	high FLOAT, 
	behavior TEXT NOT NULL, 
	verdict TEXT NOT NULL, 
	PRIMARY KEY (project, annotator, version), 
	FOREIGN KEY(project) REFERENCES project (id)
);
CREATE TABLE audit (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	project INTEGER, 
	time BIGINT NOT NULL, 
	actor TEXT NOT NULL, 
	action TEXT NOT NULL, 
	detail JSON NOT NULL, 
	FOREIGN KEY(project) REFERENCES project (id)
);
CREATE TABLE connection (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	project INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	settings JSON NOT NULL, 
	secret TEXT NOT NULL, 
	cursor JSON NOT NULL, 
	last_contact BIGINT, 
	last_error TEXT NOT NULL, 
	FOREIGN KEY(project) REFERENCES project (id)
);
CREATE TABLE delivery (
	id INTEGER NOT NULL, 
	webhook INTEGER NOT NULL, 
	alert INTEGER NOT NULL, 
	attempts INTEGER NOT NULL, 
	next_attempt BIGINT NOT NULL, 
	status TEXT NOT NULL, 
	last_error TEXT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(alert) REFERENCES alert (id) ON DELETE CASCADE, 
	FOREIGN KEY(webhook) REFERENCES webhook (id) ON DELETE CASCADE, 
	CONSTRAINT delivery_once UNIQUE (webhook, alert)
);
CREATE TABLE event (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	project INTEGER NOT NULL, 
	source TEXT NOT NULL, 
	event_id TEXT NOT NULL, 
	annotation TEXT NOT NULL, 
	item TEXT NOT NULL, 
	other_item TEXT NOT NULL, 
	annotator TEXT NOT NULL, 
	label TEXT NOT NULL, 
	started BIGINT, 
	submitted BIGINT NOT NULL, 
	deleted BOOLEAN NOT NULL, 
	received BIGINT NOT NULL, 
	FOREIGN KEY(project) REFERENCES project (id), 
	CONSTRAINT event_once UNIQUE (project, source, event_id)
);
INSERT INTO "event" VALUES(1,1,'api','1','~QF-c7d_E49LMflJkDlZZ','film 1','','ann','good',NULL,1772366400000000,0,1772366400000000);
INSERT INTO "event" VALUES(2,1,'api','2','~d_a4XHSgda-GAmfKHCAu','film 1','','bob','bad',NULL,1772366400000000,0,1772366400000000);
INSERT INTO "event" VALUES(3,1,'api','3','~QF-c7d_E49LMflJkDlZZ','film 1','','ann','bad',NULL,1772366400000000,0,1772366400000000);
CREATE TABLE gold (
	project INTEGER NOT NULL, 
	item TEXT NOT NULL, 
	label TEXT NOT NULL, 
	PRIMARY KEY (project, item), 
	FOREIGN KEY(project) REFERENCES project (id)
);
CREATE TABLE hourly (
	project INTEGER NOT NULL, 
	hour BIGINT NOT NULL, 
	n_labels INTEGER NOT NULL, 
	PRIMARY KEY (project, hour), 
	FOREIGN KEY(project) REFERENCES project (id)
);
CREATE TABLE item_content (
	project INTEGER NOT NULL, 
	item TEXT NOT NULL, 
	content JSON NOT NULL, 
	added BIGINT NOT NULL, 
	PRIMARY KEY (project, item), 
	FOREIGN KEY(project) REFERENCES project (id)
);
CREATE TABLE lease (
	project INTEGER NOT NULL, 
	item TEXT NOT NULL, 
	annotator TEXT NOT NULL, 
	expires BIGINT NOT NULL, 
	PRIMARY KEY (project, item, annotator), 
	FOREIGN KEY(project) REFERENCES project (id)
);
CREATE TABLE project (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	settings JSON NOT NULL, 
	created BIGINT NOT NULL, 
	erasures INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "project" VALUES(1,'films','labels','{"model": "auto"}',1772366400000000,0);
CREATE TABLE snapshot (
	project INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	created BIGINT NOT NULL, 
	last_seq BIGINT NOT NULL, 
	n_labels INTEGER NOT NULL, 
	model TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	summary JSON NOT NULL, 
	folder TEXT NOT NULL, 
	PRIMARY KEY (project, version), 
	FOREIGN KEY(project) REFERENCES project (id)
);
CREATE TABLE token (
	id TEXT NOT NULL, 
	project INTEGER, 
	name TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	scope TEXT NOT NULL, 
	created BIGINT NOT NULL, 
	expires BIGINT, 
	revoked BIGINT, 
	last_used BIGINT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(project) REFERENCES project (id)
);
CREATE TABLE trait (
	project INTEGER NOT NULL, 
	annotator TEXT NOT NULL, 
	traits JSON NOT NULL, 
	PRIMARY KEY (project, annotator), 
	FOREIGN KEY(project) REFERENCES project (id)
);
CREATE TABLE webhook (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	project INTEGER NOT NULL, 
	url TEXT NOT NULL, 
	secret TEXT NOT NULL, 
	kinds JSON NOT NULL, 
	active BOOLEAN NOT NULL, 
	FOREIGN KEY(project) REFERENCES project (id)
);
CREATE TABLE worker_state (
	project INTEGER NOT NULL, 
	last_seq BIGINT NOT NULL, 
	heartbeat BIGINT, 
	error TEXT NOT NULL, 
	PRIMARY KEY (project), 
	FOREIGN KEY(project) REFERENCES project (id)
);
CREATE INDEX alert_by_project ON alert (project, id);
CREATE INDEX audit_by_project ON audit (project, seq);
CREATE INDEX event_by_annotation ON event (project, source, annotation);
CREATE INDEX event_by_annotator ON event (project, annotator);
CREATE INDEX event_by_seq ON event (project, seq);
CREATE INDEX event_by_slot ON event (project, item, annotator);
CREATE INDEX lease_by_annotator ON lease (project, annotator);
CREATE INDEX delivery_by_alert ON delivery (alert);
CREATE INDEX delivery_by_status ON delivery (status, next_attempt);
CREATE VIEW current_label as
select seq, project, source, event_id, annotation, item, other_item, annotator, label, started,
    submitted, deleted, received
from (
    select ranked.*, row_number() over (
        partition by ranked.project, item, annotator,
            case when project.kind = 'comparisons' then seq else 0 end
        order by submitted desc, seq desc
    ) as place
    from (
        select event.*, row_number() over (
            partition by project, source, annotation order by submitted desc, seq desc
        ) as rank_in_annotation
        from event
    ) as ranked
    join project on project.id = ranked.project
    where rank_in_annotation = 1 and not deleted
) as living
where place = 1;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('event',3);
COMMIT;
