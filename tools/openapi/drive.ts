/*
 * Drives every operation of a console with inputs that are made from its OpenAPI document, and
 * compares each answer with what the document says of it.
 */
import fc from "fast-check"
import createClient from "openapi-fetch"
import { checksOf, pointerTo } from "./check.ts"
import { type Hints, Inputs, oddTexts, type Schema } from "./inputs.ts"

interface Parameter {
  readonly name: string
  readonly in: "header" | "path" | "query"
  readonly required?: boolean
  readonly schema: Schema
}

interface Media {
  readonly schema: Schema
}

interface Answers {
  readonly content?: Readonly<Record<string, Media>>
  readonly headers?: Readonly<Record<string, { readonly required?: boolean }>>
}

interface DocumentedOperation {
  readonly operationId: string
  readonly parameters?: ReadonlyArray<Parameter>
  readonly requestBody?: {
    readonly required?: boolean
    readonly content: Readonly<Record<string, Media>>
  }
  readonly responses: Readonly<Record<string, Answers>>
}

/** An OpenAPI document, as far as it is driven by. */
export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>
  readonly components: { readonly schemas: object }
}

/** An operation with its place in the document. */
export interface Operation extends DocumentedOperation {
  readonly method: string
  readonly path: string
}

/** A request, before it is written. */
interface Request {
  readonly operation: Operation
  readonly path: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string>>
  readonly contentType: string | undefined
  /** Undefined without a body. */
  readonly body: unknown
}

/** What a console answered. */
interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly ms: number
}

/** An answer that is not what the document says. */
export interface Finding {
  readonly operation: string
  readonly why: string
  readonly asked: string
  readonly answered: string
}

/** What came of one operation. */
export interface Driven {
  readonly operation: string
  readonly inputs: number
  /** How many answers had each status. */
  readonly statuses: Readonly<Record<string, number>>
  readonly slowestMs: number
  /** Why inputs were refused as invalid, and how many for each reason. */
  readonly refused: Readonly<Record<string, number>>
}

export interface Report {
  readonly driven: ReadonlyArray<Driven>
  readonly mutations: Driven
  readonly findings: ReadonlyArray<Finding>
}

export interface Options {
  /** Where the console is. */
  readonly url: string
  /** A token of all tenants with all scopes, whose rate is high. */
  readonly token: string
  readonly document: Document
  /** Inputs of each operation that its schemas allow. */
  readonly inputs: number
  /** Inputs of all operations together that differ from such a one in one way. */
  readonly mutations: number
  readonly seed: number
  /** What fields may be, by their names. `url` has to be there: it must lead nowhere else. */
  readonly hints: Hints
  /** Returns values that there are, of parameters of paths by their names. Asked before each operation. */
  readonly known: (operation: Operation) => Promise<Hints>
}

/** Requests at the same time: of no kind more than one tenant gets. */
const atOnce = 2
/** How long a stream that does not end is listened to, ms. */
const listenMs = 300
/** How many findings of one operation and one kind are kept. */
const maxAlike = 3

const isJson = (type: string): boolean => /[/+]json\b/.test(type)

/** Operations that remove what others are asked about come last. */
const isLast = ({ method, operationId }: Operation): boolean =>
  method === "delete" || operationId === "endpoints.disable"

/** Returns the operations of a document. */
export const operationsOf = ({ paths }: Document): ReadonlyArray<Operation> =>
  Object.entries(paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ ...operation, method, path }))
    )
    .toSorted((one, other) => Number(isLast(one)) - Number(isLast(other)))

const asText = (value: unknown): string =>
  typeof value === "string" ? value : JSON.stringify(value ?? null)

/** How many parameters that may be left out a request has at most: many together find nothing. */
const maxChosen = 3

const few = (all: Readonly<Record<string, fc.Arbitrary<unknown>>>) =>
  fc
    .subarray(Object.entries(all), { maxLength: Math.min(Object.keys(all).length, maxChosen) })
    .chain((chosen) => fc.record(Object.fromEntries(chosen), { noNullPrototype: true }))

/** Makes requests of one operation that its schemas allow. */
const requestsOf = (inputs: Inputs, operation: Operation, known: Hints): fc.Arbitrary<Request> => {
  const { parameters = [], requestBody } = operation
  const named = (place: Parameter["in"]) =>
    Object.fromEntries(
      parameters
        .filter((one) => one.in === place)
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
      query: few(named("query")),
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
interface Written {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: string | undefined
}

const written = ({ body, contentType, headers, operation, path, query }: Request): Written => {
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
const mutationsOf = (inputs: Inputs, operation: Operation, known: Hints): fc.Arbitrary<Written> => {
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

/** Reads an answer. One that does not end is left. */
const read = async (response: Response, began: number): Promise<Answer> => {
  const { headers, status } = response
  const isEndless = headers.get("content-type")?.startsWith("text/event-stream") === true
  let text = ""
  if (isEndless) {
    const reader = response.body?.getReader()
    const first = await Promise.race([
      reader?.read(),
      new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), listenMs))
    ])
    text = new TextDecoder().decode(first?.value)
    await reader?.cancel()
  } else text = await response.text()
  return { status, headers, text, ms: performance.now() - began }
}

/** Compares answers with a document. */
const comparing = (document: Document) => {
  const checkAt = checksOf(document)
  return ({ method, path, responses }: Operation, { headers, status, text }: Answer) => {
    const documented = responses[String(status)]
    if (documented === undefined) return `the status ${status} is not documented`
    const given = headers.get("content-type")?.split(";")[0] ?? ""
    const kinds = Object.keys(documented.content ?? {})
    const kind = kinds.find((one) => one === given || one === "*/*")
    if (kind === undefined && !(kinds.length === 0 && text === ""))
      return `the content type ${given} of ${status} is not documented`
    for (const [name, { required }] of Object.entries(documented.headers ?? {}))
      if (required === true && !headers.has(name)) return `${status} has no header ${name}`
    if (kind === undefined || !isJson(kind)) return undefined
    const keys = ["paths", path, method, "responses", String(status), "content", kind, "schema"]
    const problem = checkAt(pointerTo(keys))(JSON.parse(text))
    return problem === undefined
      ? undefined
      : `the body of ${status} is not as its schema: ${problem}`
  }
}

/** Finds bodies that were taken although the document refuses them. */
const refusing = (document: Document) => {
  const checkAt = checksOf(document)
  return ({ method, path, requestBody }: Operation, asked: Written, { status }: Answer) => {
    const schema = requestBody?.content["application/json"]?.schema
    const isRead = asked.headers["content-type"] === "application/json"
    if (status >= firstRefusal || schema === undefined || !isRead) return undefined
    if ((asked.body ?? "") === "")
      return requestBody?.required === true ? "it took no body, and needs one" : undefined
    const keys = ["paths", path, method, "requestBody", "content", "application/json", "schema"]
    const body = parsed(asked.body)
    // Each event of a batch is answered by itself.
    if (Array.isArray(body)) return undefined
    const problem = checkAt(pointerTo(keys))(body)
    return problem === undefined ? undefined : `it took a body that its schema refuses: ${problem}`
  }
}

const firstRefusal = 300

/** Returns what a text is as JSON; undefined, which no schema takes, for one that is none. */
const parsed = (text: string | undefined): unknown => {
  try {
    return JSON.parse(text ?? "")
  } catch {
    return undefined
  }
}

/** Returns what is wrong with an answer of the server itself, whatever was asked. */
const faultOf = ({ headers, status, text }: Answer): string | undefined => {
  if (status >= 500) return `the server answered ${status}`
  if (status < 400) return undefined
  const type = headers.get("content-type") ?? ""
  if (type !== "application/problem+json") return `${status} has the content type ${type}`
  const problem: { status?: unknown; type?: unknown } = JSON.parse(text)
  return problem.status === status && String(problem.type).startsWith("urn:petrel:problem:")
    ? undefined
    : `${status} is no problem document of its own status`
}

/** Remembers what came of requests. */
class Tally {
  readonly operation: string
  readonly statuses: Record<string, number> = {}
  readonly refused: Record<string, number> = {}
  inputs = 0
  slowestMs = 0

  constructor(operation: string) {
    this.operation = operation
  }

  note({ ms, status, text }: Answer): void {
    this.inputs++
    this.statuses[status] = (this.statuses[status] ?? 0) + 1
    this.slowestMs = Math.max(this.slowestMs, Math.round(ms))
    if (status !== 400) return
    const { detail }: { detail?: unknown } = JSON.parse(text)
    const why = String(detail).replaceAll(/"[^"]*"|\d+/g, "…")
    this.refused[why] = (this.refused[why] ?? 0) + 1
  }
}

/** The routes of a console: what is asked of each path, and by which method. */
const operationAsked = (
  operations: ReadonlyArray<Operation>,
  { method, path }: Written
): Operation | undefined => {
  // As it is sent: `.` and `..` are steps.
  const bare = new URL(path, "http://petrel").pathname
  return operations.find(
    (one) =>
      one.method === method.toLowerCase() &&
      new RegExp(`^${one.path.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(bare)
  )
}

/** Carries out work on each item, some at the same time. */
const each = async <A>(items: ReadonlyArray<A>, work: (item: A) => Promise<void>) => {
  let next = 0
  const one = async () => {
    while (next < items.length) await work(items[next++] as A)
  }
  await Promise.all(Array.from({ length: atOnce }, one))
}

/** A client of a document, whose operations are known when it runs only. */
interface AnyClient {
  readonly request: (method: never, path: never, init: never) => Promise<unknown>
}

/** Drives a console. Fails only where it does not answer at all. */
export const drive = async (options: Options): Promise<Report> => {
  const { document, hints, inputs: count, known, mutations, seed, token, url } = options
  const operations = operationsOf(document)
  const inputs = new Inputs(document, hints)
  const [compare, refuses] = [comparing(document), refusing(document)]
  const findings: Array<Finding> = []
  const alike = new Map<string, number>()
  const authorization = `Bearer ${token}`
  // What it sends is known when it runs: the types that are generated say no more.
  const client: AnyClient = createClient({
    baseUrl: url,
    headers: { authorization },
    fetch: async (request) => {
      const began = performance.now()
      const answer = await read(await fetch(request), began)
      answers.set(request.headers.get("x-input") ?? "", answer)
      return new Response(null, { status: 204 })
    }
  })
  const answers = new Map<string, Answer>()

  const note = (tally: Tally, operation: Operation | undefined, asked: Written, answer: Answer) => {
    tally.note(answer)
    const why =
      faultOf(answer) ??
      (operation === undefined
        ? undefined
        : (compare(operation, answer) ?? refuses(operation, asked, answer)))
    if (why === undefined) return
    const name = operation?.operationId ?? "no operation"
    const kind = `${name} ${why.slice(0, 80)}`
    alike.set(kind, (alike.get(kind) ?? 0) + 1)
    if ((alike.get(kind) ?? 0) > maxAlike) return
    findings.push({
      operation: name,
      why,
      asked: JSON.stringify(asked).slice(0, 2_000),
      answered: answer.text.slice(0, 1_000)
    })
  }

  let number = 0
  /** Sends with the client that knows the document. */
  const send = async (request: Request): Promise<Answer> => {
    const id = String(number++)
    const { body, contentType, headers, operation, path, query } = request
    await client.request(
      operation.method as never,
      operation.path as never,
      {
        params: { path, query },
        headers: {
          ...headers,
          "x-input": id,
          ...(contentType === undefined ? {} : { "content-type": contentType })
        },
        ...(body === undefined ? {} : { body }),
        ...(contentType === undefined || isJson(contentType)
          ? {}
          : { bodySerializer: (text: unknown) => text })
      } as never
    )
    const answer = answers.get(id)
    answers.delete(id)
    if (answer === undefined) throw new Error("the client sent nothing")
    return answer
  }
  /** Sends what the client would not. */
  const sendRaw = async ({ body, headers, method, path }: Written): Promise<Answer> => {
    const began = performance.now()
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization, ...headers },
      ...(body === undefined || method === "GET" ? {} : { body })
    })
    return read(response, began)
  }

  const driven: Array<Driven> = []
  for (const [index, operation] of operations.entries()) {
    const tally = new Tally(operation.operationId)
    const sample = fc.sample(requestsOf(inputs, operation, await known(operation)), {
      numRuns: count,
      seed: seed + index
    })
    await each(sample, async (request) =>
      note(tally, operation, written(request), await send(request))
    )
    driven.push(tally)
  }
  const tally = new Tally("mutations")
  const share = Math.ceil(mutations / operations.length)
  for (const [index, operation] of operations.entries()) {
    const sample = fc.sample(mutationsOf(inputs, operation, await known(operation)), {
      numRuns: share,
      seed: seed - index - 1
    })
    await each(sample, async (asked) =>
      note(tally, operationAsked(operations, asked), asked, await sendRaw(asked))
    )
  }
  return { driven, mutations: tally, findings }
}
