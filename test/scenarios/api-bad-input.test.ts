import { connect } from "node:net"
import { assert, describe } from "@effect/vitest"
import { Effect, References } from "effect"
import fc from "fast-check"
import { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"
import { loggingTo } from "../../src/cli/terminal/logging.ts"
import type { JsonSchema, Operation } from "../kit/api-operations.ts"
import { operations, pathOf, resolved } from "../kit/api-operations.ts"
import type { Answer, Request, TestConsole } from "../kit/console.ts"
import { revokeTestToken, startConsole } from "../kit/console.ts"
import { endpoint, eventually } from "../kit/engine.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario } = onServer()

/** How much has been stored in each stream of the installation. */
const stored = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const prefix = names.events.replace(/EVENTS$/, "")
  return yield* ask("look", async () => {
    const found: Record<string, number> = {}
    for await (const { config, state } of jsm.streams.list())
      if (config.name.toUpperCase().replace(/^KV_/, "").startsWith(prefix))
        found[config.name] = state.last_seq
    return found
  })
})

const values = {
  tenant: "acme",
  id: "e",
  number: "1",
  delivery: "x.e",
  event: "a",
  job: "job-1-00000000",
  token: "0000000000000000"
}

const isProblem = ({ headers, json, status }: Answer) => {
  assert.strictEqual(headers.get("content-type"), "application/problem+json")
  assert.strictEqual(json.status, status)
  assert.match(String(json.type), /^urn:petrel:problem:/)
  assert.isString(json.title)
}

const hasBody = ({ method }: Operation) =>
  method === "POST" || method === "PUT" || method === "PATCH"

const objectIn = (schema: JsonSchema | undefined): JsonSchema | undefined => {
  if (schema === undefined) return undefined
  const { anyOf, ...own } = resolved(schema)
  return own.properties === undefined
    ? anyOf?.map(objectIn).find((one) => one !== undefined)
    : resolved(schema)
}

/** Values of a kind that a schema does not take. */
const wrongFor = (schema: JsonSchema): unknown => {
  const text = JSON.stringify(resolved(schema))
  return text.includes('"object"') || text.includes('"array"') ? 5 : { not: "this" }
}

/** Requests that differ from what is right in one way, and the statuses that may answer them. */
const wrongRequests = (
  operation: Operation,
  tokens: Record<"good" | "revoked" | "other" | "powerless", string>
): ReadonlyArray<
  readonly [what: string, path: string, request: Request, statuses: ReadonlyArray<number>]
> => {
  const path = pathOf(operation, values)
  const { method, parameters } = operation
  const right = { method, token: tokens.good, ...(hasBody(operation) ? { body: {} } : {}) }
  const schema = objectIn(operation.body)
  const [field = "", fieldSchema = {}] = Object.entries(schema?.properties ?? {}).at(-1) ?? []
  const isRaw = operation.id === "events.publishRaw"
  const hasQuery = parameters.some((one) => one.in === "query")
  return [
    ["no token", path, { ...right, token: undefined }, [401]],
    ["a token that is none", path, { ...right, token: "ptl_nonsense" }, [401]],
    ["a revoked token", path, { ...right, token: tokens.revoked }, [401]],
    ["a token without scopes", path, { ...right, token: tokens.powerless }, [403]],
    ...(path.includes("/tenants/")
      ? [["another tenant's token", path, { ...right, token: tokens.other }, [403]] as const]
      : []),
    ["an unknown parameter", `${path}?nonsense=1`, right, hasQuery ? [400] : []],
    ...(parameters.some(({ name }) => name === "cursor")
      ? [
          // No projection runs here, which knows the cursors of the log.
          [
            "a broken cursor",
            `${path}?cursor=bm9uc2Vuc2U`,
            right,
            [operation.id.startsWith("log.") ? 503 : 400]
          ] as const
        ]
      : []),
    ...(parameters.some(({ name }) => name === "limit")
      ? [
          ["a wrong limit", `${path}?limit=0`, right, [400]] as const,
          ["a hexadecimal limit", `${path}?limit=0x10`, right, [400]] as const
        ]
      : []),
    [
      "a tenant that can be none",
      path.replace("/acme", "/a.b"),
      right,
      path.includes("/acme") ? [400, 403] : []
    ],
    ...(schema === undefined
      ? []
      : [
          ["an unknown field", path, { ...right, body: { nonsense: 1 } }, [400]] as const,
          [
            "a wrong type",
            path,
            { ...right, body: { [field]: wrongFor(fieldSchema) } },
            [400]
          ] as const,
          [
            "no object",
            path,
            { ...right, body: "5", headers: { "content-type": "application/json" } },
            [400]
          ] as const,
          [
            "no JSON",
            path,
            { ...right, body: "{", headers: { "content-type": "application/json" } },
            [400]
          ] as const,
          [
            "another kind of body",
            path,
            { ...right, body: "{}", headers: { "content-type": "text/csv" } },
            operation.id.startsWith("events.") ? [400] : [415]
          ] as const
        ]),
    ...(hasBody(operation) && (schema !== undefined || isRaw)
      ? [
          [
            "a body too large",
            path,
            {
              ...right,
              body: `"${"x".repeat(17 * 2 ** 20)}"`,
              headers: { "content-type": "application/json" }
            },
            [413]
          ] as const
        ]
      : [])
  ]
}

/** Sends bytes, and returns what comes back until the connection is closed. */
const rawRequest = (port: number, text: string) =>
  Effect.promise(
    () =>
      new Promise<string>((resolve, reject) => {
        const socket = connect(port, "127.0.0.1", () => socket.write(text))
        let heard = ""
        socket.on("data", (chunk) => {
          heard += chunk.toString()
        })
        socket.on("close", () => resolve(heard)).on("error", reject)
      })
  )

const words = fc.oneof(
  fc.constantFrom(
    "acme",
    "e",
    "*",
    "_",
    "x.e",
    "1",
    "503",
    "hour",
    "endpoint",
    "30 seconds",
    "",
    ">",
    "a.>"
  ),
  fc.string({ unit: "grapheme", maxLength: 40 })
)
const anything = fc.oneof(
  words,
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(null, true, false, [], {}),
  fc.jsonValue({ maxDepth: 2 })
)

/** Values that a schema may take, and now and then others. */
const valueFor = (given: JsonSchema, depth = 0): fc.Arbitrary<unknown> => {
  const schema = resolved(given)
  const { anyOf, enum: literals, items, maximum, minimum, properties, type } = schema
  const odd = { arbitrary: anything, weight: 1 }
  const mostly = (arbitrary: fc.Arbitrary<unknown>) => fc.oneof({ arbitrary, weight: 8 }, odd)
  if (depth > 5) return anything
  if (literals !== undefined) return mostly(fc.constantFrom(...literals))
  if (anyOf !== undefined) return fc.oneof(...anyOf.map((one) => valueFor(one, depth + 1)))
  if (properties !== undefined)
    return mostly(
      fc.record(
        Object.fromEntries(
          Object.entries(properties).map(([name, one]) => [name, valueFor(one, depth + 1)])
        ),
        { requiredKeys: [...(schema.required ?? [])] }
      )
    )
  if (type === "array") return mostly(fc.array(valueFor(items ?? {}, depth + 1), { maxLength: 4 }))
  if (type === "object") return mostly(fc.dictionary(words, anything, { maxKeys: 3 }))
  const least = Math.ceil(minimum ?? -5)
  if (type === "integer" || type === "number")
    return mostly(
      fc.integer({ min: least, max: Math.max(least, Math.min(maximum ?? 1_000, 1_000)) })
    )
  if (type === "boolean") return mostly(fc.boolean())
  return mostly(fc.oneof(words, fc.constantFrom(...(schema.examples ?? ["x"]))))
}

/** A request that the document allows, more or less. */
const requestFor = (operation: Operation) =>
  fc
    .record({
      path: fc.record(
        Object.fromEntries(
          operation.parameters
            .filter((one) => one.in === "path")
            .map(({ name, schema }) => [
              name,
              fc.oneof(
                {
                  arbitrary: fc.constant((values as Record<string, string>)[name] ?? "x"),
                  weight: 3
                },
                { arbitrary: valueFor(schema).map(String), weight: 1 }
              )
            ])
        )
      ),
      query: fc.record(
        Object.fromEntries(
          operation.parameters
            .filter((one) => one.in === "query")
            .map(({ name, schema }) => [name, valueFor(schema).map(String)])
        ),
        { requiredKeys: [] }
      ),
      body: operation.body === undefined ? fc.constant(undefined) : valueFor(operation.body)
    })
    .map(({ body, path, query }) => {
      const search = new URLSearchParams(query as Record<string, string>).toString()
      return {
        operation,
        method: operation.method,
        path: `${pathOf(operation, path as Record<string, string>)}${search === "" ? "" : `?${search}`}`,
        ...(body === undefined
          ? {}
          : { body: JSON.stringify(body), headers: { "content-type": "application/json" } })
      }
    })

const makeTokens = Effect.fnUntraced(function* ({ ask, token }: TestConsole) {
  const [good, operator, other, revoked, powerless] = yield* Effect.all([
    token(),
    token({ tenant: "*" }),
    token({ tenant: "globex" }),
    token(),
    token({ scopes: ["secrets:read"] })
  ])
  yield* revokeTestToken(revoked.split("_")[1] ?? "")
  yield* eventually(
    ask("/v1/tenants/acme/endpoints", { token: revoked }),
    ({ status }) => status === 401
  )
  return { good, operator, other, revoked, powerless }
})

describe.concurrent("a request that is wrong", () => {
  scenario("gets the right problem, whatever the route, and changes nothing", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "e" })
      const console = yield* startConsole()
      const { operator, ...tokens } = yield* makeTokens(console)
      const seesNoEndpoint = yield* console.token({ scopes: ["dead:read"] })
      const { names } = yield* Broker
      // The change of the endpoint comes there as a copy.
      const before = yield* eventually(stored, (found) => found[names.configuration] === 1)
      let tried = 0
      for (const operation of operations.filter(({ needsToken }) => needsToken)) {
        const own = { ...tokens, good: operation.isOperators ? operator : tokens.good }
        const powerless = operation.id === "endpoints.secret" ? seesNoEndpoint : tokens.powerless
        for (const [what, path, request, statuses] of wrongRequests(operation, {
          ...own,
          powerless
        })) {
          if (statuses.length === 0) continue
          const answer = yield* console.ask(path, request)
          assert.include(statuses, answer.status, `${operation.id}: ${what}: ${answer.text}`)
          isProblem(answer)
          assert.notInclude(answer.text, tokens.good, what)
          tried++
        }
      }
      assert.isAbove(tried, 4 * operations.length)
      assert.deepStrictEqual(yield* stored, before)
    })
  )

  scenario("names the unknown field, and the nearest one", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      const answer = yield* ask("/v1/tenants/acme/endpoints/e", {
        method: "PUT",
        token,
        body: { url: "https://example.com", maxInflight: 3 }
      })
      assert.deepStrictEqual(answer.json.errors, [
        { field: "maxInflight", message: "is not a field; did you mean maxInFlight?" }
      ])
      const query = yield* ask("/v1/tenants/acme/deliveries?status=9", { token })
      assert.deepInclude((query.json.errors as Array<object>)[0], {
        field: "status",
        message: '"9" must be an HTTP status such as 503, a class of them such as 5xx, or none'
      })
      const unnamed = yield* ask("/v1/tenants/acme/deliveries/x", { token })
      assert.deepInclude((unnamed.json.errors as Array<object>)[0], { field: "delivery" })
      const post = (path: string, body: object) =>
        Effect.map(
          ask(`/v1/tenants/acme/${path}`, { method: "POST", token, body }),
          ({ json }) => json.detail
        )
      assert.strictEqual(
        yield* post("redeliveries", {}),
        "say which dead letters to send again: by `endpoint`, `reason`, `status`, `since`, `until`, `type`, `id`, or `all` of them; nothing was done"
      )
      const source = { provider: "nobody", secrets: ["a"] }
      assert.match(String(yield* post("sources/s", source)), /^there is no provider "nobody"/)
      assert.match(String(yield* post("events", [])), /^body must have an event at least/)
    })
  )

  scenario("meets no route, no method, another host or no HTTP with a problem, too", () =>
    Effect.gen(function* () {
      const { ask, url } = yield* startConsole()
      const unknown = yield* ask("/v1/nothing")
      assert.strictEqual(unknown.status, 404)
      isProblem(unknown)
      const method = yield* ask("/v1/status", { method: "DELETE" })
      assert.strictEqual(method.status, 405)
      assert.strictEqual(method.headers.get("allow"), "GET")
      isProblem(method)
      const { port } = new URL(url)
      const host = yield* rawRequest(
        Number(port),
        "GET /docs HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
      )
      assert.match(host, /^HTTP\/1\.1 421 /)
      assert.include(host, "urn:petrel:problem:wrong-host")
      const none = yield* rawRequest(Number(port), "nonsense\r\n\r\n")
      assert.match(none, /^HTTP\/1\.1 400 /)
      assert.include(none, "application/problem+json")
    })
  )

  scenario("is asked for by names of up to 255 letters, with any letter in them", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const token = yield* make()
      for (const name of ["A;b", "x".repeat(255), "a%2Fb", "a%3Bb", "50%25", "a+b,c=d"]) {
        const found = yield* ask(`/v1/tenants/acme/events/${name}`, { token })
        assert.strictEqual(found.status, 404, `${name}: ${found.text}`)
        const read = decodeURIComponent(name)
        assert.include(String(found.json.detail), read.slice(0, 100), name)
      }
      const long = yield* ask(`/v1/tenants/${"x".repeat(101)}/endpoints`, { token })
      assert.strictEqual(long.status, 403)
      for (const name of ["%zz", "%", "a%E0%A4%A"]) {
        const broken = yield* ask(`/v1/tenants/acme/events/${name}`, { token })
        assert.strictEqual(broken.status, 400, `${name}: ${broken.text}`)
        isProblem(broken)
      }
    })
  )

  scenario("leaves no token in a log line or an answer, wherever it was put", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logged = loggingTo({ write: (line) => lines.push(line) })
      yield* Effect.gen(function* () {
        const { ask, token: make } = yield* startConsole()
        const [token, secret] = [yield* make(), yield* make()]
        const said = [
          yield* ask(`/v1/tenants/${secret}/endpoints`, { token }),
          yield* ask(`/v1/tenants/acme/endpoints/${secret}`, { token }),
          yield* ask(`/v1/${secret}`, { token }),
          yield* ask(`/v1/tenants/acme/events/${secret}x`, { token }),
          yield* ask(`/v1/tenants/acme/tokens/${secret}`, { token, method: "DELETE" }),
          yield* ask("/v1/tenants/acme/endpoints/e", {
            ...{ token, method: "PATCH" },
            body: { [secret]: 1, url: secret, retry: secret }
          }),
          yield* ask("/v1/tenants/acme/events", {
            ...{ token, method: "POST" },
            body: [
              { type: secret, data: 1 },
              { type: "a", [secret]: 1 }
            ]
          })
        ]
        for (const { text } of said) assert.notInclude(text, secret.slice(-43))
        yield* eventually(
          Effect.sync(() => lines.filter((line) => line.includes('"request"'))),
          (requests) => requests.length >= said.length
        )
        assert.notInclude(lines.join(), secret.slice(-43))
        assert.include(lines.join(), '"route":"/v1/tenants/{tenant}/endpoints/{id}"')
      }).pipe(Effect.provide(logged), Effect.provideService(References.MinimumLogLevel, "Info"))
    })
  )

  scenario(
    "has no URL that all workers would have to keep at any length, or of several lines",
    () =>
      Effect.gen(function* () {
        const { ask, token: make } = yield* startConsole()
        const token = yield* make()
        const statusOf = (url: string) =>
          Effect.map(
            ask("/v1/tenants/acme/endpoints/e", { token, method: "PUT", body: { url } }),
            ({ status, text }) => ({ status, text })
          )
        const long = (length: number) => "https://example.com/".padEnd(length, "x")
        assert.strictEqual((yield* statusOf(long(2_048))).status, 201)
        for (const url of [
          long(2_049),
          "https://example.com/\r\nx",
          "https://example.com/\u0000"
        ]) {
          const { status, text } = yield* statusOf(url)
          assert.strictEqual(status, 400, url)
          assert.include(text, "must be a URL of at most 2048 characters on one line")
        }
      })
  )

  scenario("names a body that is given beside another, as it was written", () =>
    Effect.gen(function* () {
      const { ask, token: make } = yield* startConsole()
      const answer = yield* ask("/v1/tenants/acme/events", {
        ...{ token: yield* make(), method: "POST" },
        body: { type: "a", data: 1, text: "x" }
      })
      assert.strictEqual(answer.status, 400)
      const message = '"x" is given beside data: give one of them'
      assert.deepStrictEqual(answer.json.errors, [{ field: "text", message }])
    })
  )

  scenario("is of the same route however its path is written", () =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const logged = loggingTo({ write: (line) => lines.push(line) })
      yield* Effect.gen(function* () {
        const { ask, token: make } = yield* startConsole()
        const token = yield* make()
        const events = "v1//tenants/acme/EVENTS"
        for (const path of [`//${events}/acme.one`, "/V1/tenants/acme/events/acme.two/"])
          assert.strictEqual((yield* ask(path, { token })).status, 404)
        const removed = yield* ask(`//${events}`, { token, method: "DELETE" })
        assert.deepStrictEqual([removed.status, removed.headers.get("allow")], [405, "POST, GET"])
        for (const path of ["/docs", "/docs/", "//docs", "/Docs"])
          assert.include(
            (yield* ask(path)).headers.get("content-security-policy") ?? path,
            "default-src"
          )
        yield* eventually(
          Effect.sync(() => lines.filter((line) => line.includes('"request"'))),
          (requests) => requests.length >= 7
        )
        assert.notMatch(lines.join(), /acme\.(?:one|two)/)
      }).pipe(Effect.provide(logged), Effect.provideService(References.MinimumLogLevel, "Info"))
    })
  )

  scenario("never finds a defect, whatever it holds", () =>
    Effect.gen(function* () {
      yield* endpoint({ id: "e" })
      const console = yield* startConsole()
      const token = yield* console.token({ tenant: "*", rate: 1_000_000 })
      const fit = operations.filter(({ id }) => id !== "deliveries.live")
      const requests = fc.sample(
        fc.constantFrom(...fit).chain((operation) => requestFor(operation)),
        { numRuns: 400, seed: 20_261_123 }
      )
      for (const { operation, path, ...request } of requests) {
        const answer = yield* console.ask(path, { ...request, token })
        assert.include(
          // 503: no worker runs here to try something.
          answer.status < 500 ? [answer.status] : [503],
          answer.status,
          `${operation.id} ${path} ${JSON.stringify(request)}: ${answer.text}`
        )
        if (answer.status >= 400) isProblem(answer)
      }
    })
  )
})
