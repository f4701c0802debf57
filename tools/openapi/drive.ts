/*
 * Drives every operation of a console with inputs that are made from its OpenAPI document, and
 * compares each answer with what the document says of it.
 */
import fc from "fast-check"
import createClient from "openapi-fetch"
import { type Answer, comparing, faultOf, read, refusing } from "./answers.ts"
import { type Document, isJson, type Operation, operationsOf } from "./document.ts"
import { type Hints, Inputs } from "./inputs.ts"
import { mutationsOf, type Request, requestsOf, type Written, written } from "./requests.ts"

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
  /** The group of operations that is driven. (Default: all) */
  readonly tag?: string
  /** Inputs of each operation that its schemas allow. */
  readonly inputs: number
  /** Inputs of each operation that differ from such a one in one way. */
  readonly mutations: number
  readonly seed: number
  /** What fields may be, by their names. `url` has to be there: it must lead nowhere else. */
  readonly hints: Hints
  /**
   * Returns values that there are, of parameters of paths by their names. Asked before each operation.
   *
   * @param isChanged whether anything was asked since the last time that may have changed them.
   */
  readonly known: (operation: Operation, isChanged: boolean) => Promise<Hints>
}

/** Requests at the same time: of no kind more than one tenant gets. */
const atOnce = 2
/**
 * How often a request is sent again that was refused for want of capacity: other programs have the
 * machine, too. Each time after as long as the answer asks for.
 */
const maxRepetitions = 5

/** How many findings of one operation and one kind are kept. */
const maxAlike = 3

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

/** Sends a request, and again where the answer says that it may be answered later. */
const patiently = async (send: () => Promise<Answer>): Promise<Answer> => {
  for (let repeated = 0; ; repeated++) {
    const answer = await send()
    const after = answer.headers.get("retry-after")
    if (answer.status !== 503 || after === null || repeated === maxRepetitions) return answer
    await new Promise((again) => setTimeout(again, 1_000 * Number(after)))
  }
}

/** A client of a document, whose operations are known when it runs only. */
interface AnyClient {
  readonly request: (method: never, path: never, init: never) => Promise<unknown>
}

/** Drives a console. Fails only where it does not answer at all. */
export const drive = async (options: Options): Promise<Report> => {
  const { document, hints, inputs: count, known, mutations, seed, tag, token, url } = options
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

  let isChanged = true
  const noteChange = (method: string) => {
    if (method.toLowerCase() !== "get") isChanged = true
  }

  let number = 0
  /** Sends with the client that knows the document. */
  const send = async (request: Request): Promise<Answer> => {
    const id = String(number++)
    const { body, contentType, headers, operation, path, query } = request
    noteChange(operation.method)
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
    noteChange(method)
    const began = performance.now()
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization, ...headers },
      ...(body === undefined || method === "GET" ? {} : { body })
    })
    return read(response, began)
  }

  const driven: Array<Driven> = []
  const mutated = new Tally("mutations")
  for (const [index, operation] of operations.entries()) {
    if (tag !== undefined && operation.tags?.includes(tag) !== true) continue
    const tally = new Tally(operation.operationId)
    const there = await known(operation, isChanged)
    isChanged = false
    const allowed = fc.sample(requestsOf(inputs, operation, there), {
      numRuns: count,
      seed: seed + index
    })
    await each(allowed, async (request) =>
      note(tally, operation, written(request), await patiently(() => send(request)))
    )
    driven.push(tally)
    const wrong = fc.sample(mutationsOf(inputs, operation, there), {
      numRuns: mutations,
      seed: seed - index - 1
    })
    await each(wrong, async (asked) =>
      note(mutated, operationAsked(operations, asked), asked, await patiently(() => sendRaw(asked)))
    )
  }
  return { driven, mutations: mutated, findings }
}
