import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { afterAll, beforeAll } from "vitest"
import { enqueue, enqueueAll, type OutboxEvent } from "../../src/outbox/outbox.ts"
import type { PendingRow } from "../../src/relay/outbox-table.ts"
import type { Outcome } from "../../src/relay/relay.ts"
import { run } from "../cli/in-process.ts"
import { eventually } from "../kit/engine.ts"
import {
  firstOutboxDatabase,
  inPg,
  outboxDatabase,
  outboxWithInfinity,
  withClient
} from "../kit/outbox.ts"
import { type PostgresServer, startPostgres, withoutPostgres } from "../kit/postgres-server.ts"
import { countRows, FakeIntake, relaying } from "../kit/relaying.ts"

const event = (id: string, more: Partial<OutboxEvent> = {}): OutboxEvent => ({
  ...{ tenant: "acme", type: "invoice.paid", body: { id }, id },
  ...more
})

const add = (url: string, ...events: ReadonlyArray<OutboxEvent>) =>
  Effect.promise(() => inPg(url, (tx) => enqueueAll(tx, events)))

const numbered = (count: number, prefix: string, more: Partial<OutboxEvent> = {}) =>
  Array.from({ length: count }, (_, index) => event(`${prefix}${index}`, more))

/** Waits until the rows are noted: so many published, and none pending. */
const published = (url: string, count: number) =>
  eventually(countRows(url), (rows) => rows.published === count && rows.pending === 0)

describe.skipIf(withoutPostgres !== undefined)("a relay of an outbox", () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())
  const database = Effect.promise(() => outboxDatabase(server))
  const storing = (intake: FakeIntake) => (row: PendingRow) => Effect.sync(() => intake.store(row))

  for (const driver of ["pg", "postgres"] as const)
    it.live(`publishes with ${driver} what there is and what comes, byte for byte`, () =>
      Effect.gen(function* () {
        const url = yield* database
        const intake = new FakeIntake()
        const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
        const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`
        const tracestate = `petrel=${"~".repeat(505)}`
        const trace = { traceparent, tracestate }
        yield* add(url, event("one", { body: bytes, contentType: "application/x", ...trace }))
        // Only a notice can bring the second one.
        yield* relaying(url, { driver, publish: storing(intake), pollMs: 60_000 })
        yield* published(url, 1)
        yield* add(url, event("two"))
        yield* published(url, 2)
        assert.deepStrictEqual(intake.ids, ["one", "two"])
        assert.deepInclude(intake.stored[0], {
          ...{ tenant: "acme", type: "invoice.paid", contentType: "application/x" },
          ...trace
        })
        assert.deepStrictEqual(new Uint8Array(intake.stored[0]?.body ?? []), bytes)
      })
    )

  it.live("publishes a lower id that commits after a higher one", () =>
    Effect.gen(function* () {
      const url = yield* database
      const intake = new FakeIntake()
      yield* relaying(url, { publish: storing(intake) })
      yield* Effect.promise(() =>
        withClient(url, async (client) => {
          await client.query("begin")
          await enqueue(client, event("early"))
          await Effect.runPromise(add(url, event("late")))
          await Effect.runPromise(published(url, 1))
          await client.query("commit")
        })
      )
      yield* published(url, 2)
      assert.deepStrictEqual(intake.ids, ["late", "early"])
    })
  )

  it.live("finds what it was not notified of", () =>
    Effect.gen(function* () {
      const url = yield* database
      const intake = new FakeIntake()
      yield* relaying(url, { publish: storing(intake), pollMs: 50 })
      yield* Effect.promise(() =>
        withClient(url, (client) =>
          client.query("alter table petrel_outbox disable trigger petrel_outbox_notify")
        )
      )
      yield* add(url, event("one"))
      yield* published(url, 1)
    })
  )

  it.live("gives each tenant its share: one's many rows do not hold up another's", () =>
    Effect.gen(function* () {
      const url = yield* database
      const intake = new FakeIntake()
      yield* add(url, ...numbered(4_000, "a"))
      yield* add(url, ...numbered(5, "b", { tenant: "globex" }), event("c", { tenant: "initech" }))
      yield* relaying(url, { publish: storing(intake) })
      yield* published(url, 4_006)
      const places = intake.stored.flatMap(({ tenant }, place) =>
        tenant === "acme" ? [] : [place]
      )
      assert.lengthOf(places, 6)
      assert.isBelow(Math.max(...places), 20)
      assert.deepStrictEqual(
        intake.stored.flatMap(({ eventId, tenant }) => (tenant === "acme" ? [eventId] : [])),
        numbered(4_000, "a").map(({ id }) => id ?? "")
      )
    })
  )

  it.live("comes to all of more tenants than share a batch", () =>
    Effect.gen(function* () {
      const url = yield* database
      const intake = new FakeIntake()
      const tenants = Array.from({ length: 350 }, (_, index) => `t${index}`)
      yield* add(url, ...tenants.flatMap((tenant) => numbered(3, "", { tenant })))
      yield* relaying(url, { publish: storing(intake), pollMs: 60_000 })
      yield* published(url, 1_050)
    })
  )

  it.live("sets aside what can never be an event, with the reason, and publishes the others", () =>
    Effect.gen(function* () {
      const url = yield* database
      const intake = new FakeIntake()
      const publish = (row: PendingRow) =>
        Effect.sync(
          (): Outcome =>
            row.eventId === "bad" ? { kind: "refused", why: "it is bad" } : intake.store(row)
        )
      yield* add(url, event("one"), event("bad"), event("two"))
      const { heard } = yield* relaying(url, { publish })
      // They are marked first, and what is refused is set aside after that.
      const counted = yield* eventually(countRows(url), ({ pending }) => pending === 0)
      assert.deepInclude(counted, { published: 2, setAside: 1 })
      const rows = yield* Effect.promise(() =>
        withClient(url, (client) =>
          client.query("select event_id, error from petrel_outbox where set_aside_at is not null")
        )
      )
      assert.deepStrictEqual(rows.rows, [{ event_id: "bad", error: "it is bad" }])
      assert.deepStrictEqual(heard.setAside, ["bad: it is bad"])
    })
  )

  for (const driver of ["pg", "postgres"] as const)
    it.live(`sets aside with ${driver} what has an infinite created_at, until it is released`, () =>
      Effect.gen(function* () {
        const url = yield* Effect.promise(() => outboxWithInfinity(server))
        const intake = new FakeIntake()
        yield* add(url, event("one"), event("two", { tenant: "globex" }))
        const { heard } = yield* relaying(url, { driver, publish: storing(intake), pollMs: 50 })
        const counted = yield* eventually(countRows(url), ({ pending }) => pending === 0)
        assert.deepInclude(counted, { published: 2, setAside: 2 })
        const why =
          "its created_at is infinite; `petrel outbox release` publishes it with the time of the release"
        assert.deepStrictEqual(heard.setAside, [`never: ${why}`, `always: ${why}`])
        assert.deepStrictEqual([...intake.ids].sort(), ["one", "two"])
        assert.deepStrictEqual(
          heard.problems.filter((problem) => problem !== undefined),
          []
        )
        assert.strictEqual((yield* run("outbox", "release", "--all", "--database", url)).code, 0)
        yield* published(url, 4)
      })
    )

  it.live(
    "publishes again what the broker has not acknowledged, without holding up the others",
    () =>
      Effect.gen(function* () {
        const url = yield* database
        const intake = new FakeIntake()
        let tries = 0
        const publish = (row: PendingRow) =>
          Effect.sync((): Outcome => {
            const stored = intake.store(row)
            // It is stored, and the acknowledgement is lost.
            return row.eventId === "lost" && ++tries < 3
              ? { kind: "unknown", why: "no answer" }
              : stored
          })
        yield* add(url, event("lost"), event("one"))
        yield* relaying(url, { publish, pollMs: 50 })
        yield* eventually(countRows(url), (rows) => rows.published === 1)
        yield* add(url, event("two"))
        yield* published(url, 3)
        assert.deepStrictEqual([...intake.ids].sort(), ["lost", "one", "two"])
        assert.strictEqual(intake.repeats, 2)
      })
  )

  it.live("does not hold up others while the broker keeps one row waiting", () =>
    Effect.gen(function* () {
      const url = yield* database
      const intake = new FakeIntake()
      const publish = (row: PendingRow) =>
        row.eventId === "slow" ? Effect.never : Effect.sync(() => intake.store(row))
      yield* add(url, event("slow"), event("one"))
      yield* relaying(url, { publish })
      yield* eventually(countRows(url), (rows) => rows.published === 1)
      yield* add(url, event("two"))
      yield* eventually(countRows(url), (rows) => rows.published === 2)
    })
  )

  it.live("waits while the broker takes nothing, says why, and goes on", () =>
    Effect.gen(function* () {
      const url = yield* database
      const intake = new FakeIntake()
      let isFull = true
      const publish = (row: PendingRow) =>
        Effect.sync((): Outcome => (isFull ? { kind: "unknown", why: "full" } : intake.store(row)))
      yield* add(url, ...numbered(10, ""))
      const { heard } = yield* relaying(url, { publish })
      yield* eventually(
        Effect.sync(() => heard.problems),
        (problems) => problems.includes("full")
      )
      assert.strictEqual((yield* countRows(url)).pending, 10)
      isFull = false
      yield* published(url, 10)
      assert.isUndefined(heard.problems.at(-1))
    })
  )

  for (const driver of ["pg", "postgres"] as const)
    it.live(`is the only one; another one with ${driver} takes over when its session ends`, () =>
      Effect.gen(function* () {
        const url = yield* database
        const [first, second] = [new FakeIntake(), new FakeIntake()]
        const one = yield* relaying(url, { driver, publish: storing(first) })
        yield* add(url, event("one"))
        yield* published(url, 1)
        const other = yield* relaying(url, { driver, publish: storing(second) })
        yield* eventually(
          Effect.sync(() => other.heard.states),
          (states) => states.includes("standing by")
        )
        yield* add(url, event("two"))
        yield* published(url, 2)
        assert.deepStrictEqual([first.ids, second.ids], [["one", "two"], []])
        yield* one.stop
        yield* add(url, event("three"))
        yield* published(url, 3)
        assert.deepStrictEqual(second.ids, ["three"])
      })
    )

  for (const driver of ["pg", "postgres"] as const)
    it.live(`comes back with ${driver} after its connection was broken`, () =>
      Effect.gen(function* () {
        const url = yield* database
        const intake = new FakeIntake()
        const { heard } = yield* relaying(url, { driver, publish: storing(intake) })
        yield* add(url, event("one"))
        yield* published(url, 1)
        yield* Effect.promise(() =>
          withClient(url, (client) =>
            client.query(
              "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'petrel-outbox' and datname = current_database()"
            )
          )
        )
        yield* eventually(
          Effect.sync(() => heard.states.filter((state) => state === "publishing").length),
          (count) => count === 2
        )
        yield* add(url, event("two"))
        yield* published(url, 2)
        assert.strictEqual(intake.repeats, 0)
      })
    )

  it.live("removes what was published for as long as it is kept, and nothing else", () =>
    Effect.gen(function* () {
      const url = yield* database
      const intake = new FakeIntake()
      const first = yield* relaying(url, { publish: storing(intake) })
      yield* add(url, ...numbered(2_500, ""))
      yield* published(url, 2_500)
      yield* first.stop
      yield* Effect.promise(() =>
        withClient(url, (client) =>
          client.query(
            "update petrel_outbox set published_at = published_at - interval '2 hours' where event_id <> '7'"
          )
        )
      )
      const stuck = () => Effect.succeed<Outcome>({ kind: "unknown", why: "full" })
      yield* add(url, event("waiting"))
      const { heard } = yield* relaying(url, { publish: stuck })
      yield* eventually(
        Effect.sync(() => heard.removed),
        (removed) => removed === 2_499
      )
      assert.deepInclude(heard.waiting, { pending: 1, setAside: 0 })
      assert.isAbove(heard.waiting?.oldestMs ?? 0, 0)
      assert.deepInclude(yield* countRows(url), { published: 1, pending: 1 })
    })
  )

  it.live("has no more bodies in memory than it may", () =>
    Effect.gen(function* () {
      const url = yield* database
      const storingMs = 20
      let [open, most] = [0, 0]
      const intake = new FakeIntake()
      const publish = (row: PendingRow) =>
        Effect.gen(function* () {
          open += row.body.byteLength
          most = Math.max(most, open)
          yield* Effect.sleep(storingMs)
          open -= row.body.byteLength
          return intake.store({ ...row, body: new Uint8Array() })
        })
      const body = "x".repeat(900_000)
      for (let batch = 0; batch < 3; batch++)
        yield* add(url, ...numbered(10, `${batch}-`, { body }))
      yield* relaying(url, { publish })
      yield* published(url, 30)
      assert.isAtLeast(most, 5 * 900_000)
      assert.isAtMost(most, 17 * 1024 * 1024)
    })
  )

  it.live("finishes what is under way when it is stopped", () =>
    Effect.gen(function* () {
      const url = yield* database
      const intake = new FakeIntake()
      const begun = yield* Deferred.make<void>()
      const gate = yield* Deferred.make<void>()
      const publish = (row: PendingRow) =>
        Effect.gen(function* () {
          yield* Deferred.succeed(begun, undefined)
          yield* Deferred.await(gate)
          return intake.store(row)
        })
      yield* add(url, ...numbered(20, ""))
      const { stop } = yield* relaying(url, { publish })
      yield* Deferred.await(begun)
      const stopping = yield* Effect.forkChild(stop, { startImmediately: true })
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(stopping)
      assert.strictEqual((yield* countRows(url)).published, intake.stored.length)
      assert.lengthOf(intake.stored, 20)
    })
  )

  it.live("waits while the database is read-only", () =>
    Effect.gen(function* () {
      const url = yield* database
      const intake = new FakeIntake()
      yield* add(url, event("one"))
      const readOnly = (value: "on" | "off") =>
        Effect.promise(() =>
          withClient(server.url, (client) =>
            client.query(
              `alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only = ${value}`
            )
          )
        )
      yield* readOnly("on")
      const { heard } = yield* relaying(url, { publish: storing(intake) })
      yield* eventually(
        Effect.sync(() => heard.problems),
        (problems) => problems.some((why) => why?.includes("it is read-only") === true)
      )
      assert.deepStrictEqual(intake.ids, [])
      yield* readOnly("off")
      yield* published(url, 1)
    })
  )

  it.live("ends with one sentence where waiting does not help", () =>
    Effect.gen(function* () {
      const publish = storing(new FakeIntake())
      const none = yield* Effect.promise(() => server.database("without_outbox"))
      const endOf = (url: string) =>
        Effect.flatMap(relaying(url, { publish }), ({ ended }) =>
          Effect.map(Effect.flip(ended), ({ message }) => message)
        )
      assert.strictEqual(
        yield* endOf(none),
        "the database has no table petrel_outbox: run `petrel outbox migrate` first"
      )
      yield* Effect.promise(() =>
        withClient(none, (client) => client.query("create table petrel_outbox (id int)"))
      )
      assert.match(yield* endOf(none), /^the table petrel_outbox is not an outbox of Petrel: /)
      assert.strictEqual(
        yield* endOf(yield* Effect.promise(() => firstOutboxDatabase(server))),
        "the outbox petrel_outbox is of version 1, and this Petrel needs 2: run `petrel outbox migrate`"
      )
      assert.match(
        yield* endOf(`${server.url}_absent`),
        /^the database did not take a connection: /
      )
    })
  )

  it.live("ends before it publishes where its user may not do what it must, and names that", () =>
    Effect.gen(function* () {
      const url = yield* database
      const ask = (text: string) =>
        Effect.promise(() => withClient(url, (client) => client.query(text)))
      yield* ask('create role "The Relay" login')
      yield* ask('grant select on petrel_outbox to "The Relay"')
      yield* add(url, event("one"))
      const intake = new FakeIntake()
      const asRelay = url.replace("postgres@", "The%20Relay@")
      const run = () => relaying(asRelay, { publish: storing(intake) })
      const first = yield* Effect.flip((yield* run()).ended)
      assert.strictEqual(
        first.message,
        'the database\'s user "The Relay" has no privilege to update and delete in petrel_outbox: run `grant update, delete on "petrel_outbox" to "The Relay"` in the database'
      )
      assert.deepStrictEqual(intake.ids, [])
      yield* ask('grant update, delete on "petrel_outbox" to "The Relay"')
      const { ended } = yield* run()
      yield* published(url, 1)
      yield* ask('revoke update on petrel_outbox from "The Relay"')
      yield* add(url, event("two"))
      assert.strictEqual(
        (yield* Effect.flip(ended)).message,
        'the database\'s user "The Relay" has no privilege to update in petrel_outbox: run `grant update on "petrel_outbox" to "The Relay"` in the database'
      )
    })
  )

  it.live("ends where policies may hide rows from its user, and says what to do", () =>
    Effect.gen(function* () {
      const url = yield* database
      const ask = (text: string) =>
        Effect.promise(() => withClient(url, (client) => client.query(text)))
      yield* ask("create role hidden login")
      yield* ask("grant select, update, delete on petrel_outbox to hidden")
      const run = () =>
        relaying(url.replace("postgres@", "hidden@"), { publish: storing(new FakeIntake()) })
      const { ended } = yield* run()
      yield* add(url, event("one"))
      yield* published(url, 1)
      yield* ask("alter table petrel_outbox enable row level security")
      yield* add(url, event("two"))
      const hides =
        'row-level security may hide rows of petrel_outbox from the database\'s user hidden: run `alter role hidden bypassrls`, or `alter table "petrel_outbox" disable row level security`, in the database'
      assert.strictEqual((yield* Effect.flip(ended)).message, hides)
      assert.strictEqual((yield* Effect.flip((yield* run()).ended)).message, hides)
      yield* ask("alter role hidden bypassrls")
      yield* run()
      yield* published(url, 2)
    })
  )
})
