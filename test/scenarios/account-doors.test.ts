import { assert, describe, it } from "@effect/vitest"
import { AckPolicy, DeliverPolicy, jetstream } from "@nats-io/jetstream"
import type { NatsConnection } from "@nats-io/transport-node"
import { createInbox } from "@nats-io/transport-node"
import { Effect, Layer, Schema } from "effect"
import { accessTo, inAccess, requireAccess } from "../../src/broker/access.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { abandon, connectTo } from "../../src/broker/connection.ts"
import { init } from "../../src/broker/init.ts"
import { makeNames } from "../../src/domain/names.ts"
import { listEndpoints } from "../../src/endpoints/endpoint-store.ts"
import { Facts } from "../../src/history/facts.ts"
import type { TokenRecord } from "../../src/operations/token.ts"
import { allTenants, generateToken, scopes } from "../../src/operations/token.ts"
import { run } from "../cli/in-process.ts"
import { serveNatsApi, startConsole } from "../kit/console.ts"
import { eventually, testTopology } from "../kit/engine.ts"
import type { AccountsServer } from "../kit/nats-accounts.ts"
import { startWithAccounts } from "../kit/nats-accounts.ts"
import { askOverNats } from "../kit/nats-requests.ts"
import { onServer, quiet } from "../kit/scenario.ts"

const names = makeNames()
const url = "https://example.com/"
const put = JSON.stringify({ id: "billing", url })

/** A broker with the accounts of nats.conf, its operator, and a console. */
const onAccounts = (isApart = true, changed?: (text: string) => string) =>
  Effect.gen(function* () {
    const server = yield* Effect.acquireRelease(
      Effect.promise(() => startWithAccounts(changed)),
      ({ stop }) => Effect.promise(stop)
    )
    const as = (user: "operator" | "console") => {
      const own = Facts.layer.pipe(Layer.provideMerge(connectTo({ url: server.url(user) })))
      const access = accessTo({ url: server.url(`access_${user}`) })
      return Layer.build(Layer.fresh(isApart ? Layer.merge(own, access) : own))
    }
    const operator = yield* as("operator")
    yield* Effect.provideContext(init(testTopology), operator)
    return { server, operator, consoleUser: yield* as("console") }
  })

const connected = (server: AccountsServer, user: Parameters<AccountsServer["as"]>[0]) =>
  Effect.promise(() => server.as(user))

/** Has the broker answer a request with a stored message of this body, on a subject of choice. */
const deliverTo = (worker: NatsConnection, reply: string, body: string) =>
  Effect.promise(async () => {
    const { seq } = await jetstream(worker).publish(names.subjects.dead("acme", "tool"), body)
    worker.publish(`$JS.API.DIRECT.GET.${names.dead}`, JSON.stringify({ seq }), { reply })
    await worker.flush()
  })

const { scenario } = onServer()

const noRequest = "a message that is not a request was ignored"

const Counts = Schema.Array(
  Schema.Struct({
    name: Schema.String,
    num_requests: Schema.Int,
    num_errors: Schema.Int,
    last_error: Schema.optionalKey(Schema.String)
  })
)

describe.concurrent("the NATS service", () => {
  scenario("takes no stored message for a request, wherever a consumer or a reply leads it", () =>
    Effect.gen(function* () {
      const { connection, js, jsm, names } = yield* natsClients
      yield* serveNatsApi()
      const service = names.subjects.api("acme", "endpoints.put")
      const status = names.subjects.api("_", "system.status")
      // Where a request has the tenant, this has `_`: all tenants.
      const led = yield* Effect.promise(() => js.publish(names.subjects.dead("acme", "_"), ""))
      const { seq } = yield* Effect.promise(() => js.publish(names.subjects.dead("acme", "a"), put))
      yield* Effect.promise(() =>
        jsm.consumers.add(names.dead, {
          ...{ durable_name: "led", deliver_subject: status, deliver_group: "q" },
          ...{ ack_policy: AckPolicy.Explicit, deliver_policy: DeliverPolicy.All, max_deliver: 1 }
        })
      )
      for (const [subject, stored] of [
        [service, seq],
        [status, led.seq]
      ] as const)
        connection.publish(`$JS.API.DIRECT.GET.${names.dead}`, JSON.stringify({ seq: stored }), {
          reply: subject
        })
      connection.publish(service, put)
      connection.publish(service, put, { reply: "$JS.API.STREAM.NAMES" })
      const counts = Effect.map(
        askOverNats(connection, `$SRV.STATS.${names.subjects.root}`),
        ({ json: { endpoints } }) =>
          Schema.decodeUnknownSync(Counts)(endpoints).filter(
            ({ num_errors, num_requests }) => num_errors + num_requests > 0
          )
      )
      // Both messages of the consumer, and one that was read.
      const seen = yield* eventually(
        counts,
        (all) => all.reduce((sum, { num_errors: errors }) => sum + errors, 0) === 6
      )
      assert.sameDeepMembers(seen, [
        { name: "endpoints-put", num_requests: 0, num_errors: 3, last_error: noRequest },
        { name: "system-status", num_requests: 0, num_errors: 3, last_error: noRequest }
      ])
      assert.lengthOf(yield* listEndpoints(), 0)
      const { json } = yield* askOverNats(connection, service, put)
      assert.strictEqual(json.id, "billing")
    })
  )
})

const token = Effect.gen(function* () {
  const { hash, id, token } = yield* generateToken()
  const record: TokenRecord = {
    ...{ v: 1, id, hash, tenant: allTenants, scopes: [...scopes] },
    ...{ createdAt: 0, by: "nobody" }
  }
  return { id, token, record: JSON.stringify(record) }
})

describe("with the accounts of nats.conf, who has a worker's password", () => {
  for (const isApart of [true, false])
    it.live(
      isApart
        ? "makes no token for the API"
        : "makes one where the tokens are in the account of the streams",
      () =>
        Effect.gen(function* () {
          const { consoleUser, server } = yield* onAccounts(isApart)
          const api = yield* startConsole().pipe(Effect.provideContext(consoleUser))
          const worker = yield* connected(server, "worker")
          const forged = yield* token
          const subject = `$KV.${names.buckets.tokens}.${forged.id}`
          yield* deliverTo(worker, subject, forged.record)
          const ask = api.ask("/v1/status", { token: forged.token })
          if (!isApart) return yield* eventually(ask, ({ status }) => status === 200)
          // Made after it, and known.
          const other = yield* connected(server, "access_operator")
          const real = yield* token
          yield* Effect.promise(() =>
            jetstream(other).publish(`$KV.${names.buckets.tokens}.${real.id}`, real.record)
          )
          yield* eventually(
            api.ask("/v1/status", { token: real.token }),
            ({ status }) => status === 200
          )
          assert.strictEqual((yield* ask).status, 401)
        }).pipe(Effect.scoped, Effect.provide(quiet))
    )

  it.live("asks the API for nothing, with a request that it answers itself", () =>
    Effect.gen(function* () {
      const { consoleUser, operator, server } = yield* onAccounts()
      yield* serveNatsApi().pipe(Effect.provideContext(consoleUser))
      const worker = yield* connected(server, "worker")
      const service = names.subjects.api("acme", "endpoints.put")
      const heard = new Promise<void>((done) => {
        worker.subscribe(names.subjects.ask(0), {
          callback: (_, message) => {
            // It may answer there what it likes, and with a reply subject of its own.
            worker.publish(service, put, { reply: createInbox() })
            message.respond(put)
            done()
          }
        })
      })
      worker.publish(names.subjects.ask(0), "", { reply: service })
      yield* Effect.promise(() => heard)
      yield* Effect.promise(() => worker.flush())
      const acme = yield* connected(server, "acme")
      const { code } = yield* askOverNats(acme, names.subjects.api("acme", "endpoints.get"), {
        id: "billing"
      })
      assert.strictEqual(code, 404)
      assert.lengthOf(yield* Effect.provideContext(listEndpoints(), operator), 0)
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )
})

describe("with the accounts of nats.conf, a console that is not connected to that of tokens", () => {
  it.live("takes no token, as it does not hear of one that is revoked", () =>
    Effect.gen(function* () {
      const { consoleUser, server } = yield* onAccounts()
      const api = yield* startConsole().pipe(Effect.provideContext(consoleUser))
      const over = yield* connected(server, "access_operator")
      const real = yield* token
      yield* Effect.promise(() =>
        jetstream(over).publish(`$KV.${names.buckets.tokens}.${real.id}`, real.record)
      )
      const ask = api.ask("/v1/status", { token: real.token })
      yield* eventually(ask, ({ status }) => status === 200)
      yield* Effect.provideContext(inAccess(abandon), consoleUser)
      const { status, text } = yield* ask
      assert.strictEqual(status, 503, text)
      assert.include(text, "not connected to the account of tokens")
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )

  it.live("is told which login is refused", () =>
    Effect.gen(function* () {
      const { server } = yield* onAccounts()
      const url = server.url("access_console").replace("access_console:", "access_console:no")
      const { message } = yield* Effect.flip(Layer.build(accessTo({ url })))
      assert.include(message, "for the account of tokens: give others with --access-creds")
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )
})

const Answer = Schema.fromJsonString(
  Schema.Struct({ error: Schema.optionalKey(Schema.Struct({ code: Schema.Int })) })
)

describe("with the accounts of nats.conf, who has the auditor's password", () => {
  it.live("makes no consumer that delivers where the auditor wants", () =>
    Effect.gen(function* () {
      const { operator, server } = yield* onAccounts()
      yield* Effect.gen(function* () {
        const { js, jsm } = yield* natsClients
        const fact = names.subjects.fact("acme", "ep", "ok", "delivered")
        yield* Effect.promise(() => js.publish(fact, put))
        const auditor = yield* connected(server, "auditor")
        const target = `$KV.${names.buckets.endpoints}.globex.billing`
        for (const [verb, body] of [
          ["CREATE", { name: "led", deliver_subject: target }],
          ["CREATE", { durable_name: "copy", deliver_subject: target }],
          ["RESET", { deliver_subject: target }]
        ] as const)
          for (const last of ["", ".copy", ".led"]) {
            const subject = `petrel.api.CONSUMER.${verb}.${names.history}${last}`
            const request = JSON.stringify({ stream_name: names.history, config: body })
            const answer = yield* Effect.promise(() =>
              auditor.request(subject, request, { timeout: 2_000 }).then(
                (message) => message.string(),
                () => '{"error":{"code":503}}'
              )
            )
            const { error } = Schema.decodeUnknownSync(Answer)(answer)
            assert.isDefined(error, `${subject}: ${answer}`)
          }
        // The broker has done what was asked before.
        const made = yield* Effect.promise(() => jsm.consumers.list(names.history).next())
        assert.deepStrictEqual(
          made.filter(({ config }) => config.deliver_subject === target),
          []
        )
        const bucket = `KV_${names.buckets.endpoints}`
        const { state } = yield* Effect.promise(() => jsm.streams.info(bucket))
        assert.strictEqual(state.messages, 0)
      }).pipe(Effect.provideContext(operator))
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )
})

/** The permissions of the console's user in the account of access, one each. */
const permissions = [
  '"$KV.petrel_tokens.>"',
  '"$JS.API.STREAM.INFO.KV_petrel_tokens"',
  '"$JS.API.STREAM.MSG.GET.KV_petrel_tokens"',
  '"$JS.API.CONSUMER.CREATE.KV_petrel_tokens"',
  '"$JS.API.CONSUMER.INFO.KV_petrel_tokens.*"',
  '"$JS.API.CONSUMER.MSG.NEXT.KV_petrel_tokens.*"',
  '"$JS.API.CONSUMER.DELETE.KV_petrel_tokens.*"',
  '"petrel.api.v1.>"',
  'allow_responses: { max: 1, expires: "3m" }'
]

describe("with the accounts of nats.conf, the console's login for access", () => {
  for (const permission of permissions)
    it.live(`needs ${permission}`, () =>
      Effect.gen(function* () {
        const { consoleUser, server } = yield* onAccounts(true, (text) => {
          const [before, after = ""] = text.split("user: access_console")
          assert.include(after, permission)
          return `${before}user: access_console${after.replace(permission, permission.startsWith("allow") ? "" : '"none"')}`
        })
        const refused = eventually(
          Effect.sync(() => server.violations),
          ({ length }) => length > 0
        )
        const used = Effect.gen(function* () {
          yield* requireAccess
          const { app, ask, refused, token: make } = yield* startConsole()
          const { startNatsService } = yield* Effect.promise(
            () => import("../../src/service/nats-service.ts")
          )
          yield* startNatsService(app, { refused })
          const token = yield* make({ tenant: allTenants })
          const made = yield* ask("/v1/tenants/acme/tokens", {
            ...{ method: "POST", token, body: { scopes: ["events:publish"] } }
          })
          yield* ask("/v1/tenants/acme/tokens", { token })
          const path = `/v1/tenants/acme/tokens/${String(made.json.id)}`
          yield* ask(path, { method: "DELETE", token })
          const acme = yield* connected(server, "acme")
          const answer = yield* askOverNats(acme, names.subjects.api("acme", "endpoints.list"))
          assert.isUndefined(answer.code)
        }).pipe(Effect.provideContext(consoleUser))
        const outcome = yield* Effect.raceFirst(Effect.exit(used), refused).pipe(
          Effect.timeoutOption("15 seconds")
        )
        assert.isNotEmpty(server.violations, String(outcome))
      }).pipe(Effect.scoped, Effect.provide(quiet))
    )
})

describe("a command on an installation whose tokens are in an account of their own", () => {
  it.live("says which login it lacks", () =>
    Effect.gen(function* () {
      const { server } = yield* onAccounts()
      const nats = ["--nats", server.url("operator")]
      for (const command of [
        ["init"],
        ["token", "list"],
        ["console", "--listen", "127.0.0.1:0", "--roles", "api"]
      ]) {
        const { code, err } = yield* run(...command, ...nats)
        assert.strictEqual(code, 1, command.join(" "))
        assert.include(err.join("\n"), "NATS_ACCESS_URL")
      }
      const access = ["--access-nats", server.url("access_operator")]
      const { code } = yield* run("token", "list", ...nats, ...access)
      assert.strictEqual(code, 0)
      assert.deepStrictEqual(server.violations, [])
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )

  it.live(
    "is told to run init where it has the login and the installation keeps them elsewhere",
    () =>
      Effect.gen(function* () {
        const { server } = yield* onAccounts(false)
        const nats = ["--nats", server.url("operator")]
        const access = ["--access-nats", server.url("access_operator")]
        const before = yield* run("token", "list", ...nats, ...access)
        assert.strictEqual(before.code, 1)
        assert.include(before.err.join("\n"), "run `petrel init`")
        assert.strictEqual((yield* run("init", ...nats, ...access)).code, 0)
        assert.strictEqual((yield* run("token", "list", ...nats, ...access)).code, 0)
        assert.strictEqual((yield* run("token", "list", ...nats)).code, 1)
      }).pipe(Effect.scoped, Effect.provide(quiet))
  )
})
