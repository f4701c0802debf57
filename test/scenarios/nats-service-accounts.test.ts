import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { accessTo } from "../../src/broker/access.ts"
import { connectTo } from "../../src/broker/connection.ts"
import { init } from "../../src/broker/init.ts"
import { Facts } from "../../src/history/facts.ts"
import { serveNatsApi, startConsole } from "../kit/console.ts"
import { endpoint, eventually, history, testTopology } from "../kit/engine.ts"
import { makeLog } from "../kit/log.ts"
import { startWithAccounts } from "../kit/nats-accounts.ts"
import { askOverNats } from "../kit/nats-requests.ts"
import { quiet } from "../kit/scenario.ts"

/** What the account ACME may ask for; as nats.conf shows it, everything for itself. */
const all = '"petrel.api.v1.acme.>"'

/** A broker with the accounts of nats.conf, and the service of the user `console`. */
const onAccounts = (changed = (text: string) => text) =>
  Effect.gen(function* () {
    const server = yield* Effect.acquireRelease(
      Effect.promise(() => startWithAccounts(changed)),
      ({ stop }) => Effect.promise(stop)
    )
    const connect = (user: "operator" | "console") =>
      Layer.build(
        Layer.fresh(
          Facts.layer.pipe(
            Layer.provideMerge(connectTo({ url: server.url(user) })),
            Layer.merge(accessTo({ url: server.url(`access_${user}`) }))
          )
        )
      )
    const operator = yield* connect("operator")
    yield* init(testTopology).pipe(Effect.provideContext(operator))
    const consoleUser = yield* connect("console")
    yield* serveNatsApi().pipe(Effect.provideContext(consoleUser))
    const as = (user: "access_operator" | "acme" | "alerts" | "operator" | "worker") =>
      Effect.map(
        Effect.promise(() => server.as(user)),
        (connection) => (subject: string, body?: unknown) =>
          Effect.exit(askOverNats(connection, subject, body))
      )
    return { as, consoleUser, operator, server }
  })

describe("with the accounts of nats.conf, a tenant's program", () => {
  it.live("asks for its tenant and for nobody else", () =>
    Effect.gen(function* () {
      const { as, operator, server } = yield* onAccounts()
      yield* endpoint({ tenant: "globex", id: "theirs" }).pipe(Effect.provideContext(operator))
      const facts = yield* history.pipe(Effect.provideContext(operator))
      const acme = yield* as("acme")
      const url = "https://example.com/"
      const put = yield* acme("petrel.api.v1.acme.endpoints.put", { id: "billing", url })
      assert.isTrue(put._tag === "Success" && put.value.code === undefined, String(put))
      yield* acme("petrel.api.v1.acme.endpoints.pause", { id: "billing" })
      yield* facts.count("endpoint-paused", 1)
      assert.deepInclude(facts.of("endpoint-paused")[0], {
        by: "NATS (tenant acme)",
        user: "console"
      })
      const published = yield* acme("petrel.api.v1.acme.events.publish", { type: "a", data: 1 })
      assert.isTrue(published._tag === "Success" && published.value.code === undefined)
      const listed = yield* acme("petrel.api.v1.acme.endpoints.list")
      assert.include(String(listed._tag === "Success" && listed.value.text), "billing")
      for (const subject of [
        "petrel.api.v1.globex.endpoints.get",
        "petrel.api.v1.globex.endpoints.remove",
        "petrel.api.v1._.endpoints.list",
        "petrel.api.v1.*.endpoints.list",
        "petrel.api.v1._.system.status",
        "$SRV.INFO.petrel"
      ]) {
        const refused = yield* acme(subject, { id: "theirs" })
        assert.include(String(refused), "no responders", subject)
      }
      const over = yield* as("access_operator")
      const everything = yield* over("petrel.api.v1._.endpoints.list")
      assert.include(String(everything._tag === "Success" && everything.value.text), "theirs")
      const info = yield* over("$SRV.INFO.petrel")
      assert.include(String(info._tag === "Success" && info.value.text), "petrel.api.v1._.system")
      assert.deepStrictEqual(server.violations, [])
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )

  it.live("asks for the one operation that its account has", () =>
    Effect.gen(function* () {
      const { as } = yield* onAccounts((text) => {
        // The export and the import.
        assert.lengthOf(text.split(all), 3)
        return text.replaceAll(all, '"petrel.api.v1.acme.endpoints.list"')
      })
      const acme = yield* as("acme")
      const listed = yield* acme("petrel.api.v1.acme.endpoints.list")
      assert.isTrue(listed._tag === "Success" && listed.value.text === '{"endpoints":[]}')
      const refused = yield* acme("petrel.api.v1.acme.endpoints.secret", { id: "a" })
      assert.include(String(refused), "no responders")
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )

  it.live("is not a user of Petrel's account who may say nothing", () =>
    Effect.gen(function* () {
      const { as, server } = yield* onAccounts()
      const alerts = yield* as("alerts")
      const refused = yield* alerts("petrel.api.v1.acme.endpoints.list")
      assert.isTrue(refused._tag === "Failure")
      yield* eventually(
        Effect.sync(() => server.violations.join("\n")),
        (lines) => lines.includes('Publish Violation - Subject "petrel.api.v1.acme.endpoints.list"')
      )
    }).pipe(Effect.scoped, Effect.provide(quiet))
  )
})

describe("with permissions that know nothing of the API over NATS, a console", () => {
  it.live("says so, and serves the HTTP API", () => {
    const log = makeLog()
    return Effect.gen(function* () {
      const permitted = '"petrel.api.v1.>", "$SRV.>"'
      const { consoleUser } = yield* onAccounts((text) => {
        assert.include(text, permitted)
        return text.replace(permitted, "")
      })
      yield* eventually(
        Effect.sync(() => log.count("the NATS service has ended")),
        (count) => count === 1
      )
      const { ask, token: make } = yield* startConsole().pipe(Effect.provideContext(consoleUser))
      const answer = yield* ask("/v1/tenants/acme/endpoints", { token: yield* make() })
      assert.strictEqual(answer.status, 200)
    }).pipe(Effect.scoped, Effect.provide(log.layer))
  })
})
