import { Effect, Schema } from "effect"
import { hasAge, isPending, isSetAside, tableVersion, versionIn } from "../outbox/migration.ts"
import type { TableName } from "../outbox/table-name.ts"
import { DatabaseError, type Session } from "./database.ts"
import type { Row } from "./drivers.ts"

/** A row that is to be published. */
export interface PendingRow {
  /** Its number in the table. */
  readonly id: string
  readonly tenant: string
  readonly eventId: string
  readonly type: string
  readonly contentType: string
  readonly body: Uint8Array
  readonly traceparent: string | undefined
  readonly tracestate: string | undefined
  /** How long ago it was inserted when it was read, ms; undefined if its `created_at` is infinite. */
  readonly ageMs: number | undefined
}

/** Which rows to read. */
export interface TakeOptions {
  /** Only tenants after this one; "" for all. */
  readonly after: string
  readonly tenants: number
  readonly rows: number
  readonly bytes: number
  /** Numbers of rows that are under way. */
  readonly except: ReadonlyArray<string>
}

/** A row that can never be published as it is. */
export interface SetAsideRow {
  readonly id: string
  readonly tenant: string
  readonly event: string
  readonly type: string
  readonly bytes: number
  /** When it was set aside, ms since the epoch. */
  readonly at: number
  readonly error: string
}

/** A row, for the audit. */
export interface AuditedRow {
  readonly tenant: string
  readonly eventId: string
  readonly type: string
  readonly isPublished: boolean
  readonly isSetAside: boolean
  readonly isDiscarded: boolean
  readonly intakeSeq: number | undefined
  /** How long ago it was inserted, ms; undefined if its `created_at` is infinite. */
  readonly ageMs: number | undefined
  readonly error: string | undefined
}

/** What of an outbox waits. */
export interface Waiting {
  /** Rows that wait to be published, counted up to a bound. */
  readonly pending: number
  /** How long the oldest has waited, ms; 0 if none does. */
  readonly oldestMs: number
  readonly setAside: number
}

/** A table is not there, or not an outbox of this version. The message says what to do. */
export class NoOutbox extends Schema.TaggedError<NoOutbox>()("NoOutbox", {
  message: Schema.String
}) {}

/** Rows are counted up to this: a scan of all would take ever longer where it matters. */
const mostCounted = 100_000
/** Tenants whose oldest row is looked for. */
const mostTenants = 1_000
/** Rows that the audit reads at once. */
const auditedAtOnce = 5_000
/** Rows that one statement removes. */
const mostRemoved = 2_000

/** The lock's first half: "Petr". The second half is of the table. */
const lockClass = 0x50_65_74_72

const text = (value: unknown): string => String(value)
const optional = (value: unknown): string | undefined =>
  typeof value === "string" ? value : undefined

const ageOf = ({ age_ms }: Row): number | undefined =>
  age_ms === null ? undefined : Number(age_ms)

/** A row's age at a time, ms; null if there is none: PostgreSQL fails to subtract infinite times. */
const ageAt = (time: string) =>
  `case when ${hasAge} then (extract(epoch from ${time} - created_at) * 1000)::float8 end`

const pendingRow = (row: Row): PendingRow => ({
  id: text(row.id),
  tenant: text(row.tenant),
  eventId: text(row.event_id),
  type: text(row.type),
  contentType: text(row.content_type),
  body: row.body instanceof Uint8Array ? row.body : new Uint8Array(),
  traceparent: optional(row.traceparent),
  tracestate: optional(row.tracestate),
  ageMs: ageOf(row)
})

/** The tenants that have pending rows, found by one look into the index for each. */
const tenantsWithPending = (table: string, after: string, most: string) => `
  with recursive found as (
    (select tenant from ${table} where ${isPending} and tenant > ${after} order by tenant limit 1)
    union all
    select (
      select t.tenant from ${table} t
      where t.published_at is null and t.set_aside_at is null and t.tenant > found.tenant
      order by t.tenant limit 1
    ) from found where found.tenant is not null
  ), named as materialized (select tenant from found where tenant is not null limit ${most})`

/**
 * Each tenant has the same share of a batch, so that one's million rows do not hold up another's.
 * Sizes are read before bodies: the batch is bounded before it is in memory.
 */
const takeStatement = (table: string) => `${tenantsWithPending(table, "$1::text", "$2::int")},
  shares as (
    select r.id, r.size, r.place, named.tenant from named, lateral (
      select t.id, octet_length(t.body) as size, row_number() over (order by t.id) as place
      from ${table} t
      where t.tenant = named.tenant and t.published_at is null and t.set_aside_at is null
        and t.id <> all (string_to_array($5::text, ',')::bigint[])
      order by t.id
      limit (select ceil($3::float8 / greatest(1, count(*)))::bigint from named)
    ) r
  ), bounded as (
    select id, tenant, place, sum(size) over (order by place, tenant) - size as before,
      row_number() over (order by place, tenant) as position
    from shares
  )
  select t.id::text, t.tenant, t.event_id, t.type, t.content_type, t.body, t.traceparent, t.tracestate,
    ${ageAt("clock_timestamp()")} as age_ms,
    (select count(*) from named)::float8 as tenants, (select max(tenant) from named) as last
  from bounded join ${table} t on t.tenant = bounded.tenant and t.id = bounded.id
    and t.published_at is null and t.set_aside_at is null
  where bounded.before < $4::float8 and bounded.position <= $3::float8
  order by bounded.position`

/** An outbox's table, in one session. */
export class OutboxTable {
  readonly #table: TableName
  readonly #session: Session

  constructor(session: Session, table: TableName) {
    this.#session = session
    this.#table = table
  }

  /** Its name, for people. */
  get #plain(): string {
    return this.#table.quoted.replaceAll('"', "")
  }

  /** Fails with NoOutbox unless the table is an outbox that this version knows. */
  readonly check = Effect.gen({ self: this }, function* () {
    const { quoted } = this.#table
    const [row] = yield* this.#session.query(
      "look for the table",
      "select to_regclass($1)::oid::text as oid, obj_description(to_regclass($1), 'pg_class') as comment",
      [quoted]
    )
    const found = typeof row?.oid === "string"
    const version = versionIn(optional(row?.comment) ?? null)
    if (version === tableVersion) {
      yield* this.#checkWritable
      return yield* this.#checkPolicies
    }
    const plain = this.#plain
    return yield* new NoOutbox({
      message: !found
        ? `the database has no table ${plain}: run \`petrel outbox migrate\` first`
        : version === undefined
          ? `the table ${plain} is not an outbox of Petrel: name another with --table, or rename it and run \`petrel outbox migrate\``
          : version < tableVersion
            ? `the outbox ${plain} is of version ${version}, and this Petrel needs ${tableVersion}: run \`petrel outbox migrate\``
            : `the outbox ${plain} is of version ${version}, which this Petrel does not know: use a newer one`
    })
  })

  /** A stand-by of the database gives out locks, too, but nothing could be noted there. */
  readonly #checkWritable = Effect.gen({ self: this }, function* () {
    const [row] = yield* this.#session.query(
      "say whether it can be written to",
      "select current_setting('transaction_read_only') as value"
    )
    if (row?.value !== "on") return
    return yield* new DatabaseError({
      operation: "take changes",
      detail: "it is read-only, as a stand-by is",
      code: ""
    })
  })

  /** Policies may hide rows from the session's user, and it could not tell which. */
  readonly #checkPolicies = Effect.gen({ self: this }, function* () {
    const { quoted } = this.#table
    const [row] = yield* this.#session.query(
      "look for policies",
      "select quote_ident(current_user) as user, row_security_active($1) as active",
      [quoted]
    )
    if (row?.active !== true) return
    const user = text(row.user)
    return yield* new NoOutbox({
      message: `row-level security may hide rows of ${this.#plain} from the database's user ${user}: run \`alter role ${user} bypassrls\`, or \`alter table ${quoted} disable row level security\`, in the database`
    })
  })

  /** Fails with NoOutbox unless the session's user may do with the table what a relay does. */
  readonly checkPrivileges = Effect.gen({ self: this }, function* () {
    const { quoted } = this.#table
    // `select` and `update` may be granted by column.
    const [row] = yield* this.#session.query(
      "look for privileges",
      `select quote_ident(current_user) as user, has_any_column_privilege($1, 'select') as select,
        has_any_column_privilege($1, 'update') as update, has_table_privilege($1, 'delete') as delete`,
      [quoted]
    )
    const missing = ["select", "update", "delete"].filter((name) => row?.[name] !== true)
    if (missing.length === 0) return
    const user = text(row?.user)
    return yield* new NoOutbox({
      message: `the database's user ${user} has no privilege to ${missing.join(" and ")} in ${this.#plain}: run \`grant ${missing.join(", ")} on ${quoted} to ${user}\` in the database`
    })
  })

  /** Tries to become the one relay of the table. The lock is the session's, and ends with it. */
  readonly lock: Effect.Effect<boolean, DatabaseError> = Effect.suspend(() =>
    Effect.map(
      this.#session.query(
        "give out the relay's lock",
        `select pg_try_advisory_lock(${lockClass}, hashtext(($1::regclass)::oid::text)) as held`,
        [this.#table.quoted]
      ),
      ([row]) => row?.held === true
    )
  )

  /** Calls `heard` when rows were inserted. */
  listen(heard: () => void) {
    return this.#session.listen(this.#table.base, heard)
  }

  /** Reads pending rows, the tenants' in turn. `next` is the tenant to go on after; "" to begin anew. */
  take({ after, bytes, except, rows, tenants }: TakeOptions) {
    return Effect.map(
      this.#session.query("read what is pending", takeStatement(this.#table.quoted), [
        ...[after, tenants, rows, bytes, except.join(",")]
      ]),
      (found) => {
        const [first] = found
        const isLast = Number(first?.tenants ?? 0) < tenants
        return { rows: found.map(pendingRow), next: isLast ? "" : text(first?.last) }
      }
    )
  }

  /** Notes rows as published. */
  mark(published: ReadonlyArray<{ readonly row: PendingRow; readonly seq: number }>) {
    const marks = published.map(({ row: { id, tenant }, seq }) => ({ tenant, id, seq }))
    return this.#session.query(
      "note what is published",
      `update ${this.#table.quoted} t set published_at = clock_timestamp(), intake_seq = m.seq, error = null
        from jsonb_to_recordset($1::text::jsonb) as m(tenant text, id bigint, seq bigint)
        where t.tenant = m.tenant and t.id = m.id and t.published_at is null and t.set_aside_at is null`,
      [JSON.stringify(marks)]
    )
  }

  /** Sets a row aside that cannot be published. */
  setAside({ id, tenant }: PendingRow, error: string) {
    return this.#session.query(
      "set a row aside",
      `update ${this.#table.quoted} set set_aside_at = clock_timestamp(), error = $3
        where tenant = $1 and id = $2::bigint and published_at is null and set_aside_at is null`,
      [tenant, id, error]
    )
  }

  /** Reads rows that were set aside, the oldest first. */
  setAsideRows(most: number) {
    return Effect.map(
      this.#session.query(
        "read what was set aside",
        `select id::text, tenant, event_id, type, error, octet_length(body)::float8 as bytes,
            (extract(epoch from set_aside_at) * 1000)::float8 as at
          from ${this.#table.quoted} where ${isSetAside} order by id limit ${most}`
      ),
      (rows) =>
        rows.map(
          (row): SetAsideRow => ({
            ...{ id: text(row.id), tenant: text(row.tenant), event: text(row.event_id) },
            ...{ type: text(row.type), bytes: Number(row.bytes), at: Math.round(Number(row.at)) },
            error: text(row.error)
          })
        )
    )
  }

  /**
   * Lets rows that were set aside be published, as of now if their `created_at` is infinite. Returns
   * the numbers of those that were.
   */
  release(ids: ReadonlyArray<string> | "all") {
    const createdAt = `case when ${hasAge} then created_at else clock_timestamp() end`
    return this.#change(
      ids,
      "let rows go on",
      `set_aside_at = null, error = null, created_at = ${createdAt}`
    )
  }

  /** Gives up rows that were set aside: they stay as long as published ones. */
  discard(ids: ReadonlyArray<string> | "all") {
    const now = "clock_timestamp()"
    return this.#change(ids, "discard rows", `discarded_at = ${now}, published_at = ${now}`)
  }

  #change(ids: ReadonlyArray<string> | "all", operation: string, change: string) {
    return Effect.map(
      this.#session.query(
        operation,
        `update ${this.#table.quoted} set ${change}
          where ${isSetAside} and ($1::text is null or id = any (string_to_array($1::text, ',')::bigint[]))
          returning id::text`,
        [ids === "all" ? null : ids.join(",")]
      ),
      (rows) => rows.map(({ id }) => text(id))
    )
  }

  /** The database's time, for `auditedRows`. */
  readonly now: Effect.Effect<string, DatabaseError> = Effect.suspend(() =>
    Effect.map(
      this.#session.query("tell the time", "select clock_timestamp()::text as now"),
      ([row]) => text(row?.now)
    )
  )

  /**
   * Reads all rows, some at a time.
   *
   * @param after the last one that was read.
   * @param until rows that were published later are left out.
   */
  auditedRows(after: AuditedRow | undefined, until: string) {
    return Effect.map(
      this.#session.query(
        "read its rows",
        `select tenant, event_id, type, published_at is not null as published,
            set_aside_at is not null as set_aside, discarded_at is not null as discarded,
            intake_seq::float8 as seq, error,
            ${ageAt("$1::timestamptz")} as age_ms
          from ${this.#table.quoted}
          where ($2::text is null or (tenant, event_id) > ($2::text, $3::text))
            and (published_at is null or published_at <= $1::timestamptz)
          order by tenant, event_id limit ${auditedAtOnce}`,
        [until, after?.tenant ?? null, after?.eventId ?? null]
      ),
      (found) => {
        const rows = found.map(
          (row): AuditedRow => ({
            ...{ tenant: text(row.tenant), eventId: text(row.event_id), type: text(row.type) },
            isPublished: row.published === true,
            isSetAside: row.set_aside === true,
            isDiscarded: row.discarded === true,
            intakeSeq: typeof row.seq === "number" ? row.seq : undefined,
            ageMs: ageOf(row),
            error: optional(row.error)
          })
        )
        return { rows, next: rows.length < auditedAtOnce ? undefined : rows.at(-1) }
      }
    )
  }

  /** Counts what waits. */
  readonly waiting: Effect.Effect<Waiting, DatabaseError> = Effect.suspend(() =>
    Effect.map(
      this.#session.query(
        "count what waits",
        `${tenantsWithPending(this.#table.quoted, "''", String(mostTenants))}
        select
          (select count(*) from (select from ${this.#table.quoted} where ${isPending} limit ${mostCounted}) p)::float8 as pending,
          coalesce((select max(o.age_ms) from named, lateral (
            select ${ageAt("clock_timestamp()")} as age_ms from ${this.#table.quoted} t
            where t.tenant = named.tenant and t.published_at is null and t.set_aside_at is null
            order by t.id limit 1
          ) o), 0)::float8 as oldest_ms,
          (select count(*) from (select from ${this.#table.quoted} where ${isSetAside} limit ${mostCounted}) s)::float8 as set_aside`
      ),
      ([row]) => ({
        pending: Number(row?.pending),
        oldestMs: Math.max(0, Number(row?.oldest_ms)),
        setAside: Number(row?.set_aside)
      })
    )
  )

  /** Removes rows that were published for so long, ms, some at a time. Returns how many. */
  readonly clean = Effect.fnUntraced({ self: this }, function* (keepMs: number) {
    const removed = yield* this.#session.query(
      "remove what was published",
      `with gone as (
        delete from ${this.#table.quoted} where ctid = any (array(
          select ctid from ${this.#table.quoted}
          where published_at < now() - $1::float8 * interval '1 millisecond'
          order by published_at limit ${mostRemoved}
        )) and published_at < now() - $1::float8 * interval '1 millisecond' returning 1
      ) select count(*)::float8 as count from gone`,
      [keepMs]
    )
    const count = Number(removed[0]?.count)
    return { count, isAll: count < mostRemoved }
  })
}
