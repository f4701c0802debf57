import type { TableName } from "./table-name.ts"

/** Version of the table. A comment on it has the version that the database has. */
export const tableVersion = 2

/** The comment of a table of a version. */
export const versionComment = (version: number): string => `Petrel outbox, version ${version}`

/** Returns the version that a table's comment names; undefined for any other table. */
export const versionIn = (comment: string | null): number | undefined => {
  const [, version] = /^Petrel outbox, version (\d+)$/.exec(comment ?? "") ?? []
  return version === undefined ? undefined : Number(version)
}

/** Rows that are to be published. The index of them has the same condition. */
export const isPending = "published_at is null and set_aside_at is null"

/** The times of insertion from which an age follows. PostgreSQL takes "infinity" as a time, too. */
export const hasAge = "isfinite(created_at)"

/** Rows that were set aside, and that nobody has released or discarded. */
export const isSetAside = "set_aside_at is not null and discarded_at is null"

/**
 * Returns the statements that make an outbox, or bring it up to date: they may run again. What no
 * event can be is refused when it is inserted, in whatever language. What is not published yet can
 * be neither changed nor removed.
 */
export const migration = ({
  base,
  prefix,
  quoted
}: TableName): string => `-- The events that wait to be published, and those that were, for a while.
create table if not exists ${quoted} (
  id bigint generated always as identity,
  tenant text collate "C" not null check (tenant ~ '^[A-Za-z0-9_-]{1,64}$' and tenant <> '_'),
  event_id text collate "C" not null default gen_random_uuid()::text check (event_id ~ '^[!-~]{1,128}$'),
  type text collate "C" not null check (
    type ~ '^[A-Za-z0-9_-]{1,64}([.][A-Za-z0-9_-]{1,64})*$' and length(type) <= 200 and type !~ '^petrel([.]|$)'
  ),
  content_type text collate "C" not null default 'application/json' check (content_type ~ '^[ -~]{1,255}$'),
  body bytea not null,
  traceparent text collate "C" check (traceparent ~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'),
  tracestate text collate "C",
  created_at timestamptz not null default clock_timestamp(),
  published_at timestamptz,
  intake_seq bigint,
  set_aside_at timestamptz,
  discarded_at timestamptz,
  error text,
  primary key (tenant, event_id)
);

-- Version 1 had a check that PostgreSQL cannot evaluate: a repetition is counted up to 255. "not valid" spares a scan of
-- the table under a lock; a new row is checked nonetheless.
alter table ${quoted}
  drop constraint if exists "${base}_tracestate_check",
  add constraint "${base}_tracestate_check" check (tracestate ~ '^[ -~]+$' and length(tracestate) <= 512) not valid;

-- A row that version 1 has taken stays: a relay sets it aside, which no check may prevent.
alter table ${quoted}
  drop constraint if exists "${base}_created_at_check",
  add constraint "${base}_created_at_check" check (${hasAge} or not (${isPending})) not valid;

-- Numbers have no index of their own: each would make publishing dearer. The relay asks for what is pending, by tenant.
create index if not exists "${base}_pending" on ${quoted} (tenant, id) where ${isPending};
create index if not exists "${base}_published" on ${quoted} (published_at) where published_at is not null;
create index if not exists "${base}_set_aside" on ${quoted} (id) where ${isSetAside};

-- Dead rows of what was published would slow down each look for what is pending.
alter table ${quoted} set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

create or replace function ${prefix}"${base}_notify"() returns trigger language plpgsql as $$
begin
  perform pg_notify('${base}', '');
  return null;
end $$;
drop trigger if exists "${base}_notify" on ${quoted};
create trigger "${base}_notify" after insert on ${quoted}
  for each statement execute function ${prefix}"${base}_notify"();

create or replace function ${prefix}"${base}_keep"() returns trigger language plpgsql as $$
begin
  if tg_op = 'TRUNCATE' then
    if exists (select from ${quoted} where published_at is null and discarded_at is null) then
      raise exception 'the outbox holds events that are not published yet: they would be lost';
    end if;
    return null;
  end if;
  raise exception 'event % of % is not published yet: it can be neither changed nor removed', old.event_id, old.tenant;
end $$;
drop trigger if exists "${base}_keep_content" on ${quoted};
create trigger "${base}_keep_content"
  before update of id, tenant, event_id, type, content_type, body, traceparent, tracestate, created_at on ${quoted}
  for each row when (old.published_at is null and old.set_aside_at is null) execute function ${prefix}"${base}_keep"();
drop trigger if exists "${base}_keep_row" on ${quoted};
create trigger "${base}_keep_row" before delete on ${quoted}
  for each row when (old.published_at is null and old.discarded_at is null) execute function ${prefix}"${base}_keep"();
drop trigger if exists "${base}_keep_rows" on ${quoted};
create trigger "${base}_keep_rows" before truncate on ${quoted}
  for each statement execute function ${prefix}"${base}_keep"();

comment on table ${quoted} is '${versionComment(tableVersion)}';
`
