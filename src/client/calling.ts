import { newId, nowMs, pause, random, within } from "./machine.ts"
import { type Bytes, type CallOptions, checkTimes, type Described } from "./operation.ts"
import { type Answer, jsonIn, NoAnswer, problemIn, retryAfterOf } from "./problem.ts"

/** What is given to a call: the parameters of path and query, and the fields of the body. */
export type Input = Readonly<Record<string, unknown>>

/** A body that is written already. */
export interface WrittenBody {
  readonly bytes: Uint8Array
  readonly contentType: string
}

/** One request. */
export interface Request {
  readonly id: string
  readonly operation: Described
  /** Undefined for what is of no tenant. */
  readonly tenant: string | undefined
  /** Without the tenant. */
  readonly input: Input
  /** Instead of the fields of the body. */
  readonly body: WrittenBody | undefined
  readonly headers: Readonly<Record<string, string>>
}

/** What requests are sent over. */
export interface Transport {
  /** Upper bound of the body of a request that publishes, bytes. */
  readonly maxBodyBytes: () => number
  /** Writes a request, and returns what sends it. Throws where it can be none. */
  readonly sender: (request: Request) => Sender
  /** The same for an answer that does not end; undefined where that cannot be. */
  readonly follower: ((request: Request) => Follower) | undefined
}

/**
 * Sends a request once. Rejects with NoAnswer where there is no answer; with anything else, the request
 * was not sent and never will be.
 */
export type Sender = (signal: AbortSignal, timeoutMs: number) => Promise<Answer>

/** Follows an answer that does not end. Rejects as a sender does, and so do the pieces. */
export type Follower = (signal: AbortSignal) => Promise<FollowedAnswer>

/** An answer whose body comes in pieces. */
export interface FollowedAnswer {
  readonly answer: Answer
  /** Undefined for a problem, which `answer` has whole. */
  readonly pieces: AsyncIterable<Uint8Array> | undefined
}

/** What all calls of a client share. */
export interface Calling {
  readonly transport: Transport
  readonly tenant: string | undefined
  readonly timeoutMs: number
  readonly retryForMs: number
}

const camel = (header: string): string =>
  header.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())

/** Returns a value of a header: a revision stands in quotes. */
const headerValue = (name: string, value: unknown): string =>
  typeof value === "number" && name.startsWith("if-") ? `"${value}"` : String(value)

const keyHeader = "idempotency-key"

const isLost = (error: unknown): boolean => error instanceof NoAnswer

/** Statuses of answers that say that the same request may be answered otherwise soon. */
const passing: ReadonlySet<number> = new Set([408, 429, 502, 503, 504])

export const isPassing = (status: number): boolean => passing.has(status)

/** Methods whose requests may be carried out twice. */
const repeatable: ReadonlySet<string> = new Set(["GET", "PUT", "PATCH", "DELETE"])

const isText = (value: unknown): boolean =>
  value === undefined || value instanceof Date || /^(string|number|boolean)$/.test(typeof value)

/** Refuses values that no URL and no header can have: they would be sent as other ones. */
const checkText = (id: string, name: string, values: ReadonlyArray<unknown>): void => {
  if (!values.every(isText))
    throw new TypeError(`${name} of ${id} is not a text, number or time: leave it out to mean any`)
  if (values.some((value) => /\p{Surrogate}/u.test(String(value))))
    throw new TypeError(`${name} of ${id} has half of a surrogate pair`)
}

const isNoDate = (value: unknown): boolean => value instanceof Date && Number.isNaN(value.getTime())

/** Refuses an input that lacks what the path needs, or has what is nowhere in the request. */
const checkInput = (id: string, operation: Described, input: Input): void => {
  const { hasBody, path, query = [] } = operation
  const inPath = Array.from(path.matchAll(/\{(\w+)\}/g), ([, name = ""]) => name)
  for (const name of inPath)
    if (name !== "tenant" && /^\.{0,2}$/.test(String(input[name] ?? "")))
      throw new TypeError(`${id} needs ${name}, which must not be empty, nor . or ..`)
  const fields = [...inPath.filter((name) => name !== "tenant"), ...query]
  const other = Object.keys(input).find((name) => !fields.includes(name))
  if (other !== undefined && hasBody !== true)
    throw new TypeError(`${other} is not a field of ${id}: it has ${fields.join(", ") || "none"}`)
  for (const name of fields) checkText(id, name, [input[name]].flat())
  // JSON would have null for it.
  const noDate = Object.keys(input).find((name) => isNoDate(input[name]))
  if (noDate !== undefined) throw new TypeError(`${noDate} of ${id} is an invalid date`)
}

/**
 * Returns a request. What may be carried out only once, and can say so, gets an Idempotency-Key
 * unless it has one.
 *
 * @throws TypeError if the input lacks what the path needs, or cannot be written.
 */
export const requestOf = (
  { tenant: own }: Pick<Calling, "tenant">,
  id: string,
  operation: Described,
  given: Input,
  options: object = {},
  body?: WrittenBody
): Request => {
  const { tenant = own, ...others } = given
  const isOfTenant = operation.path.includes("{tenant}")
  // What is of no tenant may have one among the fields of its body, as an audit.
  const input = isOfTenant || operation.hasBody !== true ? others : given
  if (isOfTenant && typeof tenant !== "string")
    throw new TypeError(`${id} needs a tenant: give one to the client, or to the call`)
  if (isOfTenant) checkText(id, "tenant", [tenant])
  checkInput(id, operation, input)
  const values: ReadonlyMap<string, unknown> = new Map(Object.entries(options))
  const headers: Record<string, string> = {}
  for (const name of operation.headers ?? []) {
    const value = values.get(camel(name))
    checkText(id, camel(name), [value])
    if (value !== undefined) headers[name] = headerValue(name, value)
    // An event that is published has an id of its own.
    else if (name === keyHeader && body === undefined) headers[name] = newId()
  }
  return {
    ...{ id, operation, input, body, headers },
    tenant: isOfTenant ? String(tenant) : undefined
  }
}

/** True for a request that may be sent again though it may have been carried out. */
const mayRepeat = ({ body, headers, operation }: Request): boolean => {
  // After a change that was made, the revision is another one.
  if (headers["if-match"] !== undefined || headers["if-none-match"] === "*") return false
  return repeatable.has(operation.method) || keyHeader in headers || body !== undefined
}

/** The longest pause that nobody asked for, ms. */
const maxPauseMs = 10_000
const firstPauseMs = 250

/** Returns how long to wait before a further attempt, ms: half of it or more is sure. */
export const pauseMs = (attempt: number, retryAfter: number | undefined): number => {
  if (retryAfter !== undefined) return retryAfter * 1_000 + random() * firstPauseMs
  return Math.min(maxPauseMs, firstPauseMs * 2 ** attempt) * (0.5 + random() / 2)
}

/** Causes of an error that are told. */
const maxCauses = 3

/** Returns what went wrong, with its causes: `fetch` itself says no more than that it failed. */
const messageOf = (error: unknown, depth = 0): string => {
  if (!(error instanceof Error)) return String(error)
  const under = error instanceof AggregateError ? error.errors[0] : error.cause
  if (under === undefined || depth === maxCauses) return error.message
  return [error.message, messageOf(under, depth + 1)].filter((text) => text !== "").join(": ")
}

/** Asks, and rejects with NoAnswer where that fails. */
export const answered = async <A>(operation: string, ask: () => Promise<A>): Promise<A> => {
  try {
    return await ask()
  } catch (error) {
    throw new NoAnswer(operation, messageOf(error), { cause: error })
  }
}

/** What an attempt came to: an answer, or none. */
type Attempt = { readonly answer: Answer } | { readonly lost: unknown }

/** True for what a further attempt may end otherwise. */
const mayPass = (request: Request, attempt: Attempt): boolean => {
  if ("lost" in attempt) return isLost(attempt.lost) && mayRepeat(request)
  const { answer } = attempt
  // It was refused before anything was done.
  if (answer.status === 429) return true
  const isUnderWay = answer.status === 409 && retryAfterOf(answer) !== undefined
  return (isPassing(answer.status) || isUnderWay) && mayRepeat(request)
}

/**
 * Sends a request, and again after what may pass, as long as it may be repeated. Rejects with NoAnswer
 * where there was none at last, and with the reason of the signal. An answer may be a problem. What
 * can be no request fails at once, with an error of its own: to repeat it changes nothing.
 */
export const send = async (
  calling: Calling,
  request: Request,
  options: CallOptions
): Promise<Answer> => {
  const { retryForMs = calling.retryForMs, signal, timeoutMs = calling.timeoutMs } = options
  checkTimes(options)
  const sendOnce = calling.transport.sender(request)
  const late = () => new NoAnswer(request.id, `there was no answer within ${timeoutMs / 1_000} s`)
  const until = nowMs() + retryForMs
  for (let attempt = 0; ; attempt++) {
    const came: Attempt = await within(timeoutMs, signal, late, (one) =>
      sendOnce(one, timeoutMs)
    ).then(
      (answer) => ({ answer }),
      (lost: unknown) => ({ lost })
    )
    if (signal?.aborted === true) throw signal.reason
    const wait = pauseMs(attempt, "answer" in came ? retryAfterOf(came.answer) : undefined)
    if (!mayPass(request, came) || nowMs() + wait > until) {
      if ("lost" in came) throw came.lost
      return came.answer
    }
    await pause(wait, signal)
  }
}

/**
 * Returns what an answer says. Throws PetrelProblem where it is a refusal, or not Petrel's.
 *
 * @param field one that the answer has, with a value of that type. (Default: its list, if it has one)
 */
export const resultOf = (
  { headers, id, operation }: Request,
  answer: Answer,
  field?: { readonly name: string; readonly is: (value: unknown) => boolean }
): unknown => {
  const { body, header, status } = answer
  // It is as the caller knows it.
  if (status === 304 && headers["if-none-match"] !== undefined) return undefined
  if (status < 200 || status >= 300) throw problemIn(id, answer)
  const contentType = header("content-type") ?? "application/octet-stream"
  if (operation.isBytes === true) return { body, contentType } satisfies Bytes
  const json = jsonIn(answer)
  const { list } = operation
  const has = field ?? (list === undefined ? undefined : { name: list, is: Array.isArray })
  const isOne = typeof json === "object" && json !== null
  if (!isOne || has?.is(Reflect.get(json, has.name)) === false) throw problemIn(id, answer)
  return json
}
