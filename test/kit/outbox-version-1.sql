-- The events that wait to be published, and those that were, for a while.
create table if not exists "petrel_outbox" (
  id bigint generated always as identity,
  tenant text collate "C" not null check (tenant ~ '^[A-Za-z0-9_-]{1,64}$' and tenant <> '_'),
  event_id text collate "C" not null default gen_random_uuid()::text check (event_id ~ '^[!-~]{1,128}$'),
  type text collate "C" not null check (
    type ~ '^[A-Za-z0-9_-]{1,64}([.][A-Za-z0-9_-]{1,64})*$' and length(type) <= 200 and type !~ '^petrel([.]|$)'
  ),
  content_type text collate "C" not null default 'application/json' check (content_type ~ '^[ -~]{1,255}$'),
  body bytea not null,
  traceparent text collate "C" check (traceparent ~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'),
  tracestate text collate "C" check (tracestate ~ '^[ -~]{1,512}$'),
  created_at timestamptz not null default clock_timestamp(),
  published_at timestamptz,
  intake_seq bigint,
  set_aside_at timestamptz,
  discarded_at timestamptz,
  error text,
  primary key (tenant, event_id)
);

-- Numbers have no index of their own: each would make publishing dearer. The relay asks for what is pending, by tenant.
create index if not exists "petrel_outbox_pending" on "petrel_outbox" (tenant, id) where published_at is null and set_aside_at is null;
create index if not exists "petrel_outbox_published" on "petrel_outbox" (published_at) where published_at is not null;
create index if not exists "petrel_outbox_set_aside" on "petrel_outbox" (id) where set_aside_at is not null and discarded_at is null;

-- Dead rows of what was published would slow down each look for what is pending.
alter table "petrel_outbox" set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

create or replace function "petrel_outbox_notify"() returns trigger language plpgsql as $$
begin
  perform pg_notify('petrel_outbox', '');
  return null;
end $$;
drop trigger if exists "petrel_outbox_notify" on "petrel_outbox";
create trigger "petrel_outbox_notify" after insert on "petrel_outbox"
  for each statement execute function "petrel_outbox_notify"();

create or replace function "petrel_outbox_keep"() returns trigger language plpgsql as $$
begin
  if tg_op = 'TRUNCATE' then
    if exists (select from "petrel_outbox" where published_at is null and discarded_at is null) then
      raise exception 'the outbox holds events that are not published yet: they would be lost';
    end if;
    return null;
  end if;
  raise exception 'event % of % is not published yet: it can be neither changed nor removed', old.event_id, old.tenant;
end $$;
drop trigger if exists "petrel_outbox_keep_content" on "petrel_outbox";
create trigger "petrel_outbox_keep_content"
  before update of id, tenant, event_id, type, content_type, body, traceparent, tracestate, created_at on "petrel_outbox"
  for each row when (old.published_at is null and old.set_aside_at is null) execute function "petrel_outbox_keep"();
drop trigger if exists "petrel_outbox_keep_row" on "petrel_outbox";
create trigger "petrel_outbox_keep_row" before delete on "petrel_outbox"
  for each row when (old.published_at is null and old.discarded_at is null) execute function "petrel_outbox_keep"();
drop trigger if exists "petrel_outbox_keep_rows" on "petrel_outbox";
create trigger "petrel_outbox_keep_rows" before truncate on "petrel_outbox"
  for each statement execute function "petrel_outbox_keep"();

comment on table "petrel_outbox" is 'Petrel outbox, version 1';
