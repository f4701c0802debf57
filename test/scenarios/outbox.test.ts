import { basename } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { init } from "../../src/broker/init.ts"
import { readOutboxReports } from "../../src/cluster/outbox-reports.ts"
import { audit } from "../../src/history/audit/audit.ts"
import { type Note, quarantine } from "../../src/intake/quarantine.ts"
import { prometheusText } from "../../src/metrics/prometheus-text.ts"
import { enqueue, enqueueAll } from "../../src/outbox/outbox.ts"
import type { OutboxProblem } from "../../src/relay/outbox-audit.ts"
import { run } from "../cli/in-process.ts"
import { endpoint, eventually, history, testTopology, worker } from "../kit/engine.ts"
import { startWithAccounts } from "../kit/nats-accounts.ts"
import { inPg, outboxDatabase, outboxWithInfinity, withClient } from "../kit/outbox.ts"
import { saysThatIt, startRelay, writeThroughKills } from "../kit/outbox-kills.ts"
import { type PostgresServer, startPostgres, withoutPostgres } from "../kit/postgres-server.ts"
import { receiver } from "../kit/receiver.ts"
import { countRows, relayHere } from "../kit/relaying.ts"
import { onServer, outage } from "../kit/scenario.ts"

const { scenario } = onServer()

const asideNote: Note = {
  ...{ source: "stripe", provider: "stripe", reason: "unreadable", problem: "no" },
  ...{ contentType: "text/plain", headers: {}, method: "POST", url: "http://x/" }
}

describe.skipIf(withoutPostgres !== undefined)("an outbox in PostgreSQL", () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())

  scenario("brings what a transaction has stored to the receiver", (place) =>
    Effect.gen(function* () {
      const database = yield* Effect.promise(() => server.database("shop"))
      const made = yield* run("outbox", "migrate", "--database", database)
      assert.deepStrictEqual(
        [made.code, made.out],
        [0, ["The outbox petrel_outbox is made (version 2)"]]
      )
      const hook = yield* receiver()
      yield* endpoint({ url: hook.url })
      const facts = yield* history
      yield* worker()
      const relay = yield* startRelay(place, database)
      yield* saysThatIt(relay, "publishing")
      const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`
      yield* Effect.promise(() =>
        inPg(database, (tx) =>
          enqueue(tx, {
            ...{ tenant: "acme", type: "invoice.paid", id: "inv_1", traceparent },
            body: { total: "10.00" }
          })
        )
      )
      yield* facts.count("delivered", 1)
      const [request] = hook.requests
      assert.deepInclude(request?.headers, {
        "webhook-id": "acme.outbox.inv_1",
        "content-type": "application/json",
        traceparent
      })
      assert.strictEqual(request?.body.toString(), '{"total":"10.00"}')
      assert.deepInclude(yield* eventually(countRows(database), (rows) => rows.published === 1), {
        pending: 0
      })
      const { judgement } = yield* audit({})
      assert.deepStrictEqual(judgement.problems.list, [])
      yield* relay.signal("SIGTERM")
      assert.strictEqual(yield* relay.ended, 0)
    })
  )

  scenario("sets aside what the broker can never take, until somebody decides", () =>
    Effect.gen(function* () {
      const database = yield* Effect.promise(() => outboxDatabase(server))
      const large = Buffer.alloc(1_000_000, "x")
      yield* Effect.promise(() =>
        withClient(database, async (client) => {
          const text =
            "insert into petrel_outbox (tenant, event_id, type, body) values ('acme', $1, 'a', $2)"
          await client.query(text, ["large", large])
          await client.query(text, ["small", Buffer.from("{}")])
          await client.query(text, ["other", Buffer.alloc(1_200_000, "x")])
        })
      )
      const { figures } = yield* relayHere(database)
      yield* eventually(countRows(database), (rows) => rows.published === 1 && rows.setAside === 2)
      assert.match(
        prometheusText(figures.families()),
        /^petrel_outbox_rows_published_total 1$[\s\S]*^petrel_outbox_rows_set_aside_total 2$/m
      )
      const outbox = (name: string, ...args: ReadonlyArray<string>) =>
        run("outbox", name, "--json", "--database", database, ...args)
      const listed = (yield* outbox("list")).out.map((line) => JSON.parse(line))
      assert.deepStrictEqual(
        listed.map(({ bytes, event, id }) => [id, event, bytes]),
        [
          ["1", "large", 1_000_000],
          ["3", "other", 1_200_000]
        ]
      )
      const { names, streamInfo } = yield* Broker
      const { config } = yield* streamInfo("look", names.intake)
      assert.strictEqual(config.max_msg_size, 982_016)
      for (const { bytes, error } of listed)
        assert.strictEqual(
          error,
          `the body's ${bytes} bytes and its headers are more than the 982016 bytes that ${names.intake} takes with the broker's max_payload (1048576): publish a link to the data instead, or raise max_payload, run \`petrel init\`, and release the row`
        )
      assert.deepStrictEqual((yield* outbox("discard", "3", "2")).err, ["petrel: not set aside: 2"])
      yield* Effect.promise(() =>
        withClient(database, (client) =>
          client.query("update petrel_outbox set body = '{}' where event_id = 'large'")
        )
      )
      assert.deepStrictEqual((yield* outbox("release", "--all")).out, ['{"release":["1"]}'])
      yield* eventually(countRows(database), (rows) => rows.published === 3 && rows.setAside === 0)
      assert.deepStrictEqual((yield* outbox("list")).out, [])
    })
  )

  scenario("knows an id again after its row was removed, and refuses another event with it", () =>
    Effect.gen(function* () {
      const database = yield* Effect.promise(() => outboxDatabase(server))
      yield* relayHere(database)
      const again = (body: string) =>
        Effect.promise(async () => {
          await withClient(database, (client) => client.query("delete from petrel_outbox"))
          await inPg(database, (tx) =>
            enqueue(tx, { tenant: "acme", type: "invoice.paid", id: "inv_1", body })
          )
        })
      const seqOf = Effect.promise(() =>
        withClient(database, async (client) => {
          const { rows } = await client.query("select intake_seq, error from petrel_outbox")
          return rows[0] as { readonly intake_seq: string | null; readonly error: string | null }
        })
      )
      for (let time = 1; time <= 2; time++) {
        yield* again("paid")
        yield* eventually(countRows(database), (rows) => rows.published === 1)
        assert.deepInclude(yield* seqOf, { intake_seq: "1" })
      }
      yield* again("other")
      yield* eventually(countRows(database), (rows) => rows.setAside === 1)
      assert.deepStrictEqual(yield* seqOf, {
        intake_seq: null,
        error: "another event of acme has the id inv_1: it is 1 of the intake"
      })
    })
  )

  outage(
    "has a relay that says so while the broker does not answer, without rows as well",
    (_, broker) =>
      Effect.gen(function* () {
        const database = yield* Effect.promise(() => outboxDatabase(server))
        const relays = [yield* relayHere(database, 100), yield* relayHere(database, 100)]
        // One publishes, and the other stands by.
        const both = (text: string) =>
          eventually(
            Effect.sync(() => relays.map(({ state }) => state.problems()[0] ?? "ready")),
            (problems) => problems.every((problem) => problem.includes(text))
          )
        yield* both("ready")
        broker.pause()
        yield* both("does not answer")
        broker.resume()
        yield* both("ready")
        yield* Effect.promise(() => broker.kill9())
        yield* both("the broker is not connected")
        yield* Effect.promise(() => broker.restart())
        yield* both("ready")
      })
  )

  scenario("has a name of its own, or its relay says that another outbox has the same", () =>
    Effect.gen(function* () {
      const problem = Effect.map(readOutboxReports, ([one]) => one?.problem)
      yield* relayHere(yield* Effect.promise(() => outboxDatabase(server)), 100)
      yield* eventually(readOutboxReports, (reports) => reports.length === 1)
      assert.isUndefined(yield* problem)
      yield* relayHere(yield* Effect.promise(() => outboxDatabase(server)), 100)
      yield* eventually(problem, (text) => text?.includes("under the same name") === true)
    })
  )

  scenario("is in the status with what its relay knows, once it has no session", (place) =>
    Effect.gen(function* () {
      const database = yield* Effect.promise(() => outboxDatabase(server))
      const ask = (text: string) =>
        Effect.promise(() => withClient(database, (client) => client.query(text)))
      const add = Effect.promise(() =>
        inPg(database, (tx) => enqueue(tx, { tenant: "acme", type: "a", body: {} }))
      )
      // A second attempt has another database, of the same server.
      const user = `user_of_${basename(database)}`
      yield* ask(`create role ${user} login`)
      yield* ask(`grant select, update, delete on petrel_outbox to ${user}`)
      yield* relayHere(database.replace("postgres@", `${user}@`), 1)
      const flags = ["--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
      const says = (command: ReadonlyArray<string>, text: RegExp) =>
        eventually(run(...command, ...flags), ({ out }) => text.test(out.join("\n")))
      yield* says(["outbox", "status"], /is published/)
      yield* ask(`alter role ${user} connection limit 0`)
      yield* ask(`select pg_terminate_backend(pid) from pg_stat_activity where usename = '${user}'`)
      yield* add
      yield* says(["outbox", "status"], /too many connections for role/)
      yield* says(
        ["status"],
        /no row waited at .*, the database did not take a connection: [\s\S]*the outbox here is not published \(the database did not take a connection: /
      )
      yield* ask(`alter role ${user} connection limit -1`)
      yield* says(["outbox", "status"], /is published/)
      yield* ask(`revoke update on petrel_outbox from ${user}`)
      yield* add
      yield* says(["outbox", "status"], /its relay has ended: .*run `grant update on/)
    })
  )

  it.live("is published by the user that nats.conf has for it", () =>
    Effect.gen(function* () {
      const broker = yield* Effect.acquireRelease(
        Effect.promise(() => startWithAccounts()),
        ({ stop }) => Effect.promise(stop)
      )
      const names = { prefix: "PETREL_", eventRoot: "events" }
      const database = yield* Effect.promise(() => outboxDatabase(server))
      const paid = { tenant: "acme", type: "invoice.paid", id: "inv_1", body: {} }
      const enqueued = () => Effect.promise(() => inPg(database, (tx) => enqueue(tx, paid)))
      yield* Effect.gen(function* () {
        yield* init(testTopology)
        yield* startRelay({ url: broker.url("outbox"), ...names }, database)
        yield* enqueued()
        yield* eventually(countRows(database), (rows) => rows.published === 1)
        // What was stored before is looked at, and the relay tells how it is.
        yield* Effect.promise(() =>
          withClient(database, (client) => client.query("delete from petrel_outbox"))
        )
        yield* enqueued()
        yield* eventually(countRows(database), (rows) => rows.published === 1)
        yield* eventually(readOutboxReports, (reports) => reports.length === 1)
      }).pipe(Effect.provide(connectTo({ ...names, url: broker.url("operator") })))
      assert.deepStrictEqual(broker.violations, [])
    }).pipe(Effect.scoped)
  )

  scenario("is told by an audit what may be published already, and what is forgotten", (place) =>
    Effect.gen(function* () {
      const database = yield* Effect.promise(() => outboxDatabase(server))
      const query = (text: string) =>
        Effect.promise(() => withClient(database, (client) => client.query(text)))
      const flags = ["--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
      const audited = Effect.map(
        run("audit", "--json", "--outbox", database, ...flags),
        ({ out }) => {
          const [sums, ...problems] = out.map((line) => JSON.parse(line))
          return {
            ...sums.outbox,
            problems: problems.map(({ event, kind, text }) => `${event} ${kind}: ${text}`)
          }
        }
      )
      const { names, purge } = yield* Broker
      // It stays when events around it are forgotten.
      yield* quarantine("acme", asideNote, Buffer.from("no event"))
      yield* Effect.promise(() =>
        inPg(database, (tx) =>
          enqueueAll(
            tx,
            ["one", "two", "three"].map((id) => ({ tenant: "acme", type: "a", id, body: { id } }))
          )
        )
      )
      const relay = yield* relayHere(database)
      yield* eventually(countRows(database), (rows) => rows.published === 3)
      yield* relay.stop
      assert.deepInclude(yield* audited, { clean: true, published: 3, uncertain: 0 })
      // The relay died before it had noted it, an hour ago.
      yield* query("alter table petrel_outbox disable trigger user")
      yield* query(
        "update petrel_outbox set created_at = now() - interval '1 hour', published_at = null, intake_seq = null where event_id = 'one'"
      )
      assert.deepInclude(yield* audited, {
        ...{ clean: false, published: 2 },
        problems: [
          `one unpublished: is 2 of ${names.intake}, and is not noted as published: a relay notes it`
        ]
      })
      for (const { src: filter } of names.subjects.incomingTransforms)
        yield* purge("forget what came in first", names.intake, { filter, seq: 4 })
      assert.deepInclude(yield* audited, {
        ...{ clean: false, published: 1, uncertain: 1 },
        counts: { unpublished: 0, "perhaps-published": 1, "outbox-lost": 0, "set-aside": 0 },
        problems: [
          `one perhaps-published: has waited for 1 h, for longer than ${names.intake} remembers: if it is an event already, a relay publishes it again, with the same id`
        ]
      })
    })
  )

  scenario(
    "publishes a row again, with its id, that was never noted and is forgotten by age",
    (place) =>
      Effect.gen(function* () {
        const database = yield* Effect.promise(() => outboxDatabase(server))
        const hook = yield* receiver()
        yield* endpoint({ url: hook.url })
        yield* worker()
        const { ask, jsm, names } = yield* natsClients
        const intake = ask("look", () => jsm.streams.info(names.intake))
        const second = 1e9
        const { config } = yield* intake
        const short = { max_age: second, duplicate_window: second }
        yield* ask("forget soon", () => jsm.streams.update(names.intake, { ...config, ...short }))
        yield* Effect.promise(() =>
          inPg(database, (tx) =>
            enqueue(tx, { tenant: "acme", type: "invoice.paid", id: "one", body: {} })
          )
        )
        const relay = yield* relayHere(database)
        yield* eventually(countRows(database), (rows) => rows.published === 1)
        yield* relay.stop
        yield* eventually(intake, ({ state }) => state.messages === 0)
        // As a relay leaves it that died before it had noted it, two minutes ago.
        yield* Effect.promise(() =>
          withClient(database, async (client) => {
            await client.query("alter table petrel_outbox disable trigger user")
            await client.query(
              "update petrel_outbox set created_at = now() - interval '2 minutes', published_at = null, intake_seq = null"
            )
          })
        )
        const flags = ["--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
        const audited = run("audit", "--json", "--outbox", database, ...flags)
        const warned = yield* audited
        assert.strictEqual(warned.code, 1)
        assert.include(warned.out.join(), "perhaps-published")
        yield* relayHere(database)
        yield* eventually(countRows(database), (rows) => rows.published === 1)
        yield* eventually(
          Effect.sync(() => hook.requests.length),
          (count) => count === 2
        )
        // Receivers know the repeat by its id.
        assert.deepStrictEqual(
          hook.requests.map(({ headers }) => headers["webhook-id"]),
          ["acme.outbox.one", "acme.outbox.one"]
        )
        const { judgement } = yield* audit({})
        assert.deepStrictEqual(judgement.problems.list, [])
      })
  )

  scenario("is compared with the intake by an audit, which finds what is lost or waits", (place) =>
    Effect.gen(function* () {
      const database = yield* Effect.promise(() => outboxDatabase(server))
      const query = (text: string) =>
        Effect.promise(() => withClient(database, (client) => client.query(text)))
      const audited = Effect.gen(function* () {
        const flags = ["--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
        const { code, err, out } = yield* run("audit", "--json", "--outbox", database, ...flags)
        const [sums, ...problems] = out.map((line) => JSON.parse(line))
        return { code, err, ...sums.outbox, problems }
      })
      const add = (...ids: ReadonlyArray<string>) =>
        Effect.promise(() =>
          inPg(database, (tx) =>
            enqueueAll(
              tx,
              ids.map((id) => ({ tenant: "acme", type: "invoice.paid", id, body: { id } }))
            )
          )
        )
      yield* add("one", "two", "of/any.kind.>")
      const relay = yield* relayHere(database)
      yield* eventually(countRows(database), (rows) => rows.published === 3)
      yield* relay.stop
      yield* add("three")
      assert.deepInclude(yield* audited, {
        ...{ code: 0, rows: 4, published: 3, underWay: 1, uncertain: 0, clean: true, problems: [] }
      })
      // What follows could not happen by itself.
      yield* query("alter table petrel_outbox disable trigger user")
      yield* query(
        "update petrel_outbox set created_at = now() - interval '2 minutes' where event_id = 'three'"
      )
      yield* query("update petrel_outbox set intake_seq = 2 where event_id = 'one'")
      const unclean = yield* audited
      assert.deepInclude(unclean, { code: 1, published: 2, clean: false })
      assert.deepStrictEqual(unclean.err, [
        "petrel: the outbox is not clean: unpublished 1, outbox-lost 1"
      ])
      assert.deepStrictEqual(
        unclean.problems.map(({ event, kind }: OutboxProblem) => [kind, event]),
        [
          ["outbox-lost", "one"],
          ["unpublished", "three"]
        ]
      )
      yield* query(
        "update petrel_outbox set set_aside_at = now(), error = 'too large' where event_id = 'three'"
      )
      assert.deepInclude((yield* audited).counts, { unpublished: 0, "set-aside": 1 })
      const { names, purge } = yield* Broker
      yield* query("update petrel_outbox set intake_seq = 1 where event_id = 'one'")
      yield* purge("forget what came in first", names.intake, { seq: 2 })
      assert.deepInclude(yield* audited, { published: 2, uncertain: 1 })
      yield* run("outbox", "discard", "--all", "--database", database)
      assert.deepInclude(yield* audited, { code: 0, discarded: 1, clean: true })
      // A broker that lost the end of its stream.
      yield* query("update petrel_outbox set intake_seq = 900 where event_id = 'two'")
      assert.deepInclude((yield* audited).counts, { "outbox-lost": 1 })
    })
  )

  scenario("is audited with rows of an infinite created_at, which can be discarded", (place) =>
    Effect.gen(function* () {
      const database = yield* Effect.promise(() => outboxWithInfinity(server))
      const flags = ["--nats", place.url, "--prefix", place.prefix, "--events", place.eventRoot]
      const audited = Effect.map(
        run("audit", "--json", "--outbox", database, ...flags),
        ({ out }) => {
          const [sums, ...problems] = out.map((line) => JSON.parse(line))
          return { ...sums.outbox, problems }
        }
      )
      const { counts, problems } = yield* audited
      assert.deepInclude(counts, { unpublished: 2, "perhaps-published": 0 })
      assert.deepStrictEqual(
        problems.map(({ event, text }: OutboxProblem) => `${event} ${text}`),
        ["always", "never"].map(
          (id) => `${id} waits, and its created_at is infinite: a relay sets it aside`
        )
      )
      yield* relayHere(database)
      yield* eventually(countRows(database), (rows) => rows.setAside === 2)
      assert.deepInclude((yield* audited).counts, { unpublished: 0, "set-aside": 2 })
      yield* run("outbox", "discard", "--all", "--database", database)
      assert.deepInclude(yield* audited, { clean: true, discarded: 2, problems: [] })
    })
  )

  outage("says so while its database is away, and goes on by itself", (place) =>
    Effect.gen(function* () {
      const database = yield* Effect.promise(() => startPostgres())
      yield* Effect.addFinalizer(() => Effect.promise(database.stop))
      const url = yield* Effect.promise(() => outboxDatabase(database))
      const relay = yield* startRelay(place, url, "--name", "shop")
      yield* saysThatIt(relay, "publishing")
      const reported = (isWell: boolean) =>
        eventually(
          readOutboxReports,
          ([report]) => report !== undefined && (report.problem === undefined) === isWell
        )
      yield* reported(true)
      yield* Effect.promise(database.kill9)
      const [report] = yield* reported(false)
      assert.deepInclude(report, { name: "shop" })
      yield* Effect.promise(database.restart)
      yield* reported(true)
      yield* Effect.promise(() =>
        inPg(url, (tx) => enqueue(tx, { tenant: "acme", type: "a", body: {} }))
      )
      yield* eventually(countRows(url), (rows) => rows.published === 1)
      const { out } = yield* run(
        ...["outbox", "status", "--nats", place.url, "--prefix", place.prefix]
      )
      assert.match(out[1] ?? "", /^shop +\S+ +0 +- +0 +is published$/)
    })
  )

  outage("publishes each row once through kills of relay, broker and database", (place, broker) =>
    Effect.gen(function* () {
      const took = yield* writeThroughKills(place, broker, server, {
        ...{ rows: 800, perTransaction: 10 },
        kills: ["relay", "broker", "database"]
      })
      assert.lengthOf(took, 800)
    })
  )
})
