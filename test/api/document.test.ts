import { assert, describe, it } from "@effect/vitest"
import { apiDocument } from "../../src/api/document.ts"
import { operations } from "../kit/api-operations.ts"
import { importTool } from "../kit/openapi-tools.ts"

/** What finds faults in a document (tools/openapi/check.ts). */
interface Checks {
  readonly lint: (document: unknown) => Promise<ReadonlyArray<string>>
  readonly wrongExamples: (document: unknown) => ReadonlyArray<string>
  readonly checksOf: (document: unknown) => (pointer: string) => (value: unknown) => unknown
}

const text = JSON.stringify(apiDocument())

/** The parts of a schema that say what is in it. */
interface Described {
  readonly $ref?: string
  readonly description?: string
  readonly anyOf?: ReadonlyArray<Described>
  readonly oneOf?: ReadonlyArray<Described>
  readonly items?: Described
  readonly properties?: Readonly<Record<string, Described>>
}

interface DocumentedOperation {
  readonly parameters?: ReadonlyArray<{ readonly name: string }>
  readonly responses?: Readonly<Record<string, { readonly headers?: object }>>
}

/** What docs/reference/settings.md explains as a whole. */
const explained = new Set(["Backoff", "Circuit", "RateLimit", "RetryPolicy", "StatusRule"])

describe("the OpenAPI document", () => {
  it("passes redocly's recommended rules, and its examples are as its schemas", async () => {
    const { lint, wrongExamples } = await importTool<Checks>("check.ts")
    assert.deepStrictEqual(await lint(apiDocument()), [])
    assert.deepStrictEqual(await lint(apiDocument("/")), [])
    assert.deepStrictEqual(wrongExamples(apiDocument()), [])
  })

  it("says of which form texts are, and what may stand together", async () => {
    const { checksOf } = await importTool<Checks>("check.ts")
    const checkAt = checksOf(apiDocument())
    const url = "https://a.example"
    const secrets = ["whsec_a"]
    for (const [schema, right, wrong] of [
      [
        "NewEndpoint",
        [
          ...["30 seconds", "1h 30m", "5m", "pt1h", "1.5 hours"].map((timeout) => ({ timeout })),
          ...["20/s", "30 per min", " 5/h burst 9 "].map((rate) => ({ rate })),
          ...[[">"], ["a.*", "b.>"], ["*"]].map((types) => ({ types })),
          { url: "HTTP://a.example" },
          { redirectsTo: ["https://a.example:8443"] }
        ].map((one) => ({ url, ...one })),
        [
          ...["soon", "5 fortnights", "1y", ""].map((timeout) => ({ timeout })),
          ...["20", "many/s"].map((rate) => ({ rate })),
          ...[[], ["a..b"], ["a.>.b"], ["a b"], Array(201).fill("a")].map((types) => ({ types })),
          { url: "ftp://a.example" },
          { url: "a.example" },
          { redirectsTo: ["https://a.example/path"] },
          { headers: { "x-a": "a\nb" } }
        ].map((one) => ({ url, ...one }))
      ],
      [
        "NewSource",
        [
          { provider: "stripe", secrets, tolerance: "5m", apiKey: "k" },
          { provider: "meta", secrets, verifyToken: "v" },
          { provider: "paypal", webhookId: "w" }
        ],
        [
          { provider: "nobody", secrets },
          { provider: "stripe", secrets, verifyToken: "v" },
          { provider: "github", secrets, publicUrl: url },
          { provider: "stripe", secrets: [] },
          { provider: "stripe", secrets, apiKey: "two words" }
        ]
      ],
      ["Redelivery", [{ all: true }, { status: "5xx" }, { id: [1] }], [{}, { status: "6xx" }]],
      ["Retry", [{ endpoint: "e" }, { status: "503" }], [{}, { status: "50" }]],
      ["QuarantineChoice", [{ number: [1] }], [{}, { number: [0] }]],
      ["Replay", [{ endpoint: "e", id: "a-1" }], [{ endpoint: "e", id: "x".repeat(41) }]]
    ] as const) {
      const check = checkAt(`#/components/schemas/${schema}`)
      for (const one of right) assert.isUndefined(check(one), JSON.stringify(one))
      for (const one of wrong) assert.isDefined(check(one), JSON.stringify(one))
    }
  })

  it("has each problem of a route as a problem document", () => {
    const { paths } = JSON.parse(text)
    for (const { id, method, needsToken, path, ...operation } of operations) {
      const { responses } = paths[path][method.toLowerCase()]
      const expected = [
        ...["400", "405", "421", "500", "503"],
        ...(needsToken ? ["401", "403", "429"] : []),
        ...(operation.hasBody ? ["408", "413", "415"] : [])
      ]
      assert.includeMembers(Object.keys(responses), expected, id)
      for (const [status, { content }] of Object.entries<{ content: object }>(responses))
        if (Number(status) >= 400)
          assert.deepStrictEqual(Object.keys(content), ["application/problem+json"], id)
    }
  })

  it("says when to repeat a request whose Idempotency-Key is in use", () => {
    const { paths } = JSON.parse(text)
    const all = Object.values<Record<string, DocumentedOperation>>(paths).flatMap((path) =>
      Object.values(path)
    )
    const withKey = all.filter(({ parameters = [], responses }) => {
      const takesKey = parameters.some(({ name }) => name.toLowerCase() === "idempotency-key")
      return takesKey && responses?.["409"] !== undefined
    })
    assert.isNotEmpty(withKey)
    for (const { responses } of withKey) assert.property(responses?.["409"]?.headers, "Retry-After")
  })

  it("says how many events a request may have, and that each has one body", () => {
    const { components, paths } = JSON.parse(text)
    const { content } = paths["/v1/tenants/{tenant}/events"].post.requestBody
    const [one, many] = content["application/json"].schema.anyOf
    assert.deepInclude(many, { minItems: 1, maxItems: 1_000, items: one })
    assert.deepStrictEqual(
      components.schemas.NewEvent.oneOf.map(({ required }: { required: unknown }) => required),
      ["data", "text", "base64"].map((name) => ["type", name])
    )
  })

  it("asks for no body where none is needed", () => {
    const { paths } = JSON.parse(text)
    const { post: pause } = paths["/v1/tenants/{tenant}/endpoints/{id}/pause"]
    assert.strictEqual(pause.requestBody.required, false)
    assert.strictEqual(paths["/v1/tenants/{tenant}/events"].post.requestBody.required, true)
  })

  it("says nothing of bodies whose form is their publisher's", () => {
    const { paths } = JSON.parse(text)
    const { get } = paths["/v1/tenants/{tenant}/events/{event}/body"]
    assert.deepStrictEqual(get.responses["200"].content, { "*/*": { schema: {} } })
    const { post } = paths["/v1/tenants/{tenant}/raw-events/{type}"]
    assert.deepStrictEqual(post.requestBody.content, { "*/*": { schema: {} } })
  })

  it("has policies once, and refers to them", () => {
    const { schemas } = JSON.parse(text).components
    for (const name of ["RetryPolicy", "Backoff", "StatusRule", "Circuit", "RateLimit"])
      assert.property(schemas, name)
    assert.strictEqual(text.split('"decorrelated"').length, 2)
  })

  it("has one path for one meaning: none matches what another one does", () => {
    const { paths } = JSON.parse(text)
    assert.deepStrictEqual(Object.keys(paths["/v1/tenants/{tenant}/events/{event}"]), ["get"])
    assert.deepStrictEqual(Object.keys(paths["/v1/tenants/{tenant}/raw-events/{type}"]), ["post"])
    const parts = [...new Set(operations.map(({ path }) => path))].map((path) => path.split("/"))
    const isParameter = (part: string) => part.startsWith("{")
    for (const one of parts)
      for (const other of parts) {
        const isSame = one.every((part, at) => part === other[at])
        const matches =
          one.length === other.length &&
          one.every(
            (part, at) => isParameter(part) || isParameter(other[at] ?? "") || part === other[at]
          )
        assert.isTrue(isSame || !matches, `${one.join("/")} ${other.join("/")}`)
      }
  })

  it("says what each operation does and each parameter means", () => {
    const { paths } = JSON.parse(text)
    for (const [path, methods] of Object.entries<Record<string, { summary?: string }>>(paths))
      for (const [method, { summary }] of Object.entries(methods))
        if (path !== "/healthz") assert.isString(summary, `${method} ${path}`)
    for (const { id, parameters } of operations)
      for (const parameter of parameters)
        assert.property(parameter, "description", `${id} ${parameter.name}`)
  })

  /** The fields of bodies that nothing describes, with the schemas that they are in. */
  const undescribed = (of: "request" | "answer"): ReadonlyArray<string> => {
    const { components, paths } = JSON.parse(text)
    const found = new Set<string>()
    const seen = new Set<string>()
    const look = (schema: Described, place: string): void => {
      const name = schema.$ref?.split("/").at(-1)
      if (name !== undefined) {
        if (explained.has(name) || seen.has(name)) return
        seen.add(name)
        look(components.schemas[name], name)
        return
      }
      for (const part of [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]) look(part, place)
      if (schema.items !== undefined) look(schema.items, place)
      for (const [field, one] of Object.entries(schema.properties ?? {})) {
        const whole =
          one.$ref === undefined ? one : components.schemas[one.$ref.split("/").at(-1) ?? ""]
        if (whole.description === undefined && one.description === undefined)
          found.add(`${place}.${field}`)
        look(one, `${place}.${field}`)
      }
    }
    type Body = { content?: Record<string, { schema: Described }> }
    type Bodies = Record<string, { requestBody?: Body; responses: Record<string, Body> }>
    for (const methods of Object.values<Bodies>(paths))
      for (const { requestBody, responses } of Object.values(methods))
        for (const body of of === "request" ? [requestBody] : Object.values(responses))
          for (const { schema } of Object.values(body?.content ?? {})) look(schema, "")
    return [...found]
  }

  it("says what each field of a request means, but for what a page of the reference explains", () => {
    assert.deepStrictEqual(undescribed("request"), [])
  })

  it("says what each field of an answer means, too", () => {
    // docs/reference/settings.md explains circuits and the settings of a tenant.
    const isExplained = (field: string) => /\.circuit\.|TenantSettings\.system\./.test(field)
    assert.deepStrictEqual(
      undescribed("answer").filter((field) => !isExplained(field)),
      []
    )
  })

  it("has every route, each path once, and its scheme", () => {
    const { paths } = JSON.parse(text)
    const ids = Object.values<Record<string, { operationId: string }>>(paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId)
    )
    assert.sameMembers(
      ids,
      operations.map(({ id }) => id)
    )
    const shapes = operations.map(
      ({ method, path }) => `${method} ${path.replaceAll(/\{\w+\}/g, "{}")}`
    )
    assert.strictEqual(new Set(shapes).size, shapes.length)
    const named = new Set(operations.map(({ path }) => path))
    assert.strictEqual(
      new Set([...named].map((path) => path.replaceAll(/\{\w+\}/g, "{}"))).size,
      named.size
    )
    assert.deepStrictEqual(
      operations.filter(({ needsToken }) => !needsToken).map(({ path }) => path),
      ["/healthz"]
    )
  })

  it("is written plainly: no texts in allOf, no numbers that are texts", () => {
    for (const odd of ['"allOf"', '"Infinity"', '"NaN"', "Encoded", '"prefixItems"'])
      assert.notInclude(text, odd)
  })

  it("refers to nothing that it does not have", () => {
    const { schemas } = JSON.parse(text).components
    for (const [, name = ""] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g))
      assert.property(schemas, name)
  })
})
