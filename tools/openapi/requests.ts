/* Requests of an operation: those that its schemas allow, and those that differ in one way. */
import fc from "fast-check"
import { isJson, type Operation, type Parameter } from "./document.ts"
import { type Hints, type Inputs, inOrder, oddTexts, type Schema } from "./inputs.ts"

/** A request, before it is written. */
export interface Request {
  readonly operation: Operation
  readonly path: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string>>
  readonly contentType: string | undefined
  /** Undefined without a body. */
  readonly body: unknown
}

const asText = (value: unknown): string =>
  typeof value === "string" ? value : JSON.stringify(value ?? null)

/** How many parameters that may be left out a request has at most: many together find nothing. */
const maxChosen = 3

const few = (all: Readonly<Record<string, fc.Arbitrary<unknown>>>) =>
  fc
    .subarray(Object.entries(all), { maxLength: Math.min(Object.keys(all).length, maxChosen) })
    .chain((chosen) => fc.record(Object.fromEntries(chosen), { noNullPrototype: true }))

/** Makes requests of one operation that its schemas allow. */
export const requestsOf = (
  inputs: Inputs,
  operation: Operation,
  known: Hints
): fc.Arbitrary<Request> => {
  const { parameters = [], requestBody } = operation
  const named = (place: Parameter["in"]) =>
    Object.fromEntries(
      parameters
        .filter((one) => one.in === place)
        // What may be left out and names what is not there can only be wrong.
        .filter(({ name, required }) => required === true || known[name]?.length !== 0)
        .map(({ name, schema }) => {
          const there = place === "header" ? undefined : known[name]
          const any = inputs.allowed(schema, name)
          return [
            name,
            there === undefined || there.length === 0
              ? any
              : fc.oneof({ arbitrary: fc.constantFrom<unknown>(...there), weight: 5 }, any)
          ]
        })
    )
  const media = Object.entries(requestBody?.content ?? {})
  const body =
    media.length === 0
      ? fc.constant({ contentType: undefined, body: undefined })
      : fc.constantFrom(...media).chain(([type, { schema }]) =>
          bodyOf(inputs, type, schema).map((body) => ({
            contentType: type === "*/*" ? "application/octet-stream" : type,
            body
          }))
        )
  return fc
    .record({
      path: fc.record(named("path"), { noNullPrototype: true }),
      query: few(named("query")).map(inOrder),
      headers: few(named("header")),
      body
    })
    .map(({ body, headers, path, query }) => ({
      operation,
      query,
      path: texts(path),
      headers: latin(texts(headers)),
      ...body
    }))
}

const texts = (values: Readonly<Record<string, unknown>>): Record<string, string> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, asText(value)]))

/** Headers with what HTTP lets them have. */
const latin = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, text]) => [
      name,
      text.replaceAll(/[^\x20-\x7e]/g, "x").trim()
    ])
  )

/** The schema of a line, where a body has a value on each. */
const event = { $ref: "#/components/schemas/NewEvent" }

const bodyOf = (inputs: Inputs, type: string, schema: Schema): fc.Arbitrary<unknown> => {
  if (type === "application/x-ndjson")
    return fc
      .array(inputs.allowed(event), { minLength: 1, maxLength: 4 })
      .map((lines) => lines.map((one) => JSON.stringify(one)).join("\n"))
  return isJson(type) ? inputs.allowed(schema) : fc.string({ maxLength: 200 })
}

/** A request as it is written. */
export interface Written {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: string | undefined
}

export const written = ({
  body,
  contentType,
  headers,
  operation,
  path,
  query
}: Request): Written => {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    for (const one of Array.isArray(value) ? value : [value]) search.append(name, asText(one))
  const filled = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent((path[name] ?? "").toWellFormed())
  )
  return {
    method: operation.method.toUpperCase(),
    path: `${filled}${search.size === 0 ? "" : `?${search}`}`,
    headers: { ...headers, ...(contentType === undefined ? {} : { "content-type": contentType }) },
    body:
      body === undefined || (contentType !== undefined && !isJson(contentType))
        ? (body as string | undefined)
        : JSON.stringify(body)
  }
}

/** Returns requests that differ from one that is allowed in one way. */
export const mutationsOf = (
  inputs: Inputs,
  operation: Operation,
  known: Hints
): fc.Arbitrary<Written> => {
  const { requestBody } = operation
  const [type, media] = Object.entries(requestBody?.content ?? {})[0] ?? []
  const odd = fc.constantFrom(...oddTexts)
  const allowed = requestsOf(inputs, operation, known)
  const withOdd = (place: "path" | "query") =>
    fc.tuple(allowed, odd, fc.nat()).map(([request, text, at]) => {
      const names = (operation.parameters ?? []).filter((one) => one.in === place)
      const { name } = names[at % Math.max(names.length, 1)] ?? { name: "notAParameter" }
      return written({ ...request, [place]: { ...request[place], [name]: text } })
    })
  const change = (how: (one: Written, text: string) => Written) =>
    fc.tuple(allowed, odd).map(([request, text]) => how(written(request), text))
  const plain = [
    withOdd("path"),
    withOdd("query"),
    change((one) => ({ ...one, path: `${one.path}${one.path.includes("?") ? "&" : "?"}x=1&x=2` })),
    change((one) => ({ ...one, path: `${one.path.replace(/\?.*/, "")}/%zz` })),
    change((one) => ({ ...one, path: one.path.replace("/v1", "//v1/./") })),
    change((one) => ({ ...one, method: one.method === "GET" ? "DELETE" : "GET", body: undefined })),
    change((one, text) => ({
      ...one,
      headers: { ...one.headers, "if-match": `"${text.replaceAll(/[^\x20-\x7e]/g, "x")}"` }
    })),
    change((one) => ({ ...one, headers: { ...one.headers, authorization: "Bearer ptl_none" } })),
    change((one) => ({ ...one, headers: { ...one.headers, accept: "text/nothing" } }))
  ]
  if (type === undefined || media === undefined) return fc.oneof(...plain)
  const bodies = [
    fc
      .tuple(allowed, inputs.changed(isJson(type) ? media.schema : event))
      .map(([request, body]) =>
        written({ ...request, contentType: "application/json", body: body ?? null })
      ),
    change((one) => ({ ...one, body: one.body?.slice(0, -1) })),
    change((one) => ({ ...one, body: "" })),
    change((one, text) => ({ ...one, body: text })),
    change((one) => ({ ...one, body: `${"[".repeat(2_000)}` })),
    change((one) => ({ ...one, headers: { ...one.headers, "content-type": "text/csv" } })),
    change((one) => ({ ...one, headers: { ...one.headers, "content-encoding": "gzip" } })),
    change((one) => ({
      ...one,
      headers: { ...one.headers, "content-type": "application/json; charset=utf-16" }
    }))
  ]
  return fc.oneof(...plain, { arbitrary: bodies[0] ?? fc.oneof(...plain), weight: 8 }, ...bodies)
}
