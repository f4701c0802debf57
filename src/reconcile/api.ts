import { Effect, Random, Schema } from "effect"
import type { Agent } from "undici"
import { request as send } from "undici"
import { AddressRefused } from "../delivery/http/connector.ts"
import { failureOf } from "../delivery/http/failure.ts"
import { parseRetryAfter } from "../policy/retry-after.ts"
import type { ApiAnswer, ApiRequest } from "../providers/listings/listing.ts"
import { bytesText, spanText } from "../text/quantities.ts"
import { timers } from "../time/timers.ts"

/** An API did not answer as its provider documents, or not at all. */
export class ApiFailed extends Schema.TaggedError<ApiFailed>()("ApiFailed", {
  /** One sentence that shows no credentials. */
  message: Schema.String,
  /** The status of the last answer; absent without one. */
  status: Schema.optionalKey(Schema.Int),
  /** The answer has more bytes than are read. */
  isTooLarge: Schema.optionalKey(Schema.Literal(true))
}) {}

/** How long an API may take for one answer, ms. */
const usualAnswerWithinMs = 30_000
/** Bytes of one answer: it is a page of a list, and in memory as a whole. */
const maxAnswerBytes = 16 * 1024 * 1024
/** How often a request is sent that fails for what may pass. */
const maxTries = 6
/** The first pause before it is sent again, ms; the next is twice as long, and so on. */
const usualFirstPauseMs = 1_000
const maxPauseMs = 60_000
/** Pauses of one request that take no longer in all need no word, ms. */
const silentPausesMs = 2_000
/** The same of one answer, ms: a page of a list takes some APIs seconds. */
const silentAnswerMs = 5_000
/** The longest time, ms, for which an API may have a reconciliation wait before it is broken off. */
const maxToldPauseMs = 15 * 60_000

export interface ApiOptions {
  /** Who answers, for messages. */
  readonly title: string
  /** What requests' paths are appended to. */
  readonly url: string
  readonly agent: Agent
  /** Requests that are sent at most. */
  readonly perSecond: number
  /** (Default: 1 s) */
  readonly firstPauseMs?: number | undefined
  /** How long it may take for one answer. (Default: 30 s) */
  readonly answerWithinMs?: number | undefined
  /** Hears, in one sentence, what a request waits for that takes seconds, and for how long. */
  readonly onWait?: ((text: string) => Effect.Effect<void>) | undefined
}

/** An API that is asked one request after the other. */
export interface Api {
  /**
   * Returns the answer of a request. It is sent again after a pause where the API is overloaded,
   * ill or out of reach, and for no longer than `Retry-After` says. Redirects are not followed:
   * credentials go nowhere else. Fails with ApiFailed.
   */
  readonly ask: (
    request: ApiRequest,
    authorization: Readonly<Record<string, string>>
  ) => Effect.Effect<ApiAnswer, ApiFailed>
}

interface Answered extends ApiAnswer {
  readonly status: number
}

const parse = (body: Uint8Array): unknown => {
  try {
    return JSON.parse(Buffer.from(body).toString("utf8"))
  } catch {
    return undefined
  }
}

const oneText = (value: string | ReadonlyArray<string> | undefined): string | undefined =>
  typeof value === "object" ? value.join(", ") : value

const sendOnce = async (
  { agent, title, url }: ApiOptions,
  { body, headers, method = "GET", path }: ApiRequest,
  authorization: Readonly<Record<string, string>>,
  signal: AbortSignal
): Promise<Answered> => {
  const answer = await send(`${url.replace(/\/+$/, "")}${path}`, {
    ...{ dispatcher: agent, method, signal },
    ...(body === undefined ? {} : { body }),
    headers: { accept: "application/json", "user-agent": "petrel", ...headers, ...authorization }
  })
  const chunks: Array<Buffer> = []
  let bytes = 0
  for await (const chunk of answer.body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxAnswerBytes) {
      answer.body.destroy()
      throw new ApiFailed({
        message: `${title} answers with more than ${bytesText(maxAnswerBytes)}`,
        isTooLarge: true
      })
    }
    chunks.push(chunk)
  }
  const whole = Buffer.concat(chunks)
  return {
    status: answer.statusCode,
    headers: Object.fromEntries(
      Object.entries(answer.headers).map(([name, value]) => [name.toLowerCase(), oneText(value)])
    ),
    body: whole,
    json: parse(whole)
  }
}

/** Characters of an API's own words that are repeated. */
const maxSaidChars = 200

/** A shorter part of credentials is no secret, and may be a word of an answer. */
const minSecretChars = 6

/** Returns the credentials in headers, in the forms in which an API may repeat them; longest first. */
const credentialsIn = (
  headers: Readonly<Record<string, string | undefined>>
): ReadonlyArray<string> =>
  Object.values(headers)
    .flatMap((value = "") => {
      const [, scheme = "", given = value] = /^(\w+) (.*)$/.exec(value) ?? []
      const plain = scheme === "Basic" ? Buffer.from(given, "base64").toString() : given
      return [given, plain, ...plain.split(":")]
    })
    .filter((text) => text.length >= minSecretChars)
    .toSorted((a, b) => b.length - a.length)

/**
 * Returns what an API says of a failure, as `: its words`, or nothing.
 *
 * @param credentials are left out: some APIs repeat the key that they refuse.
 */
const said = ({ json }: Answered, credentials: ReadonlyArray<string>): string => {
  if (typeof json !== "object" || json === null) return ""
  const { detail, error, errors, message } = json as Record<string, unknown>
  const texts = [
    message,
    detail,
    error,
    Object(error).message,
    Object(error).detail,
    Object(Object(errors)[0]).detail
  ]
  const text = texts.find((one) => typeof one === "string" && one !== "")
  return text === undefined
    ? ""
    : `: ${credentials
        .reduce((words, secret) => words.replaceAll(secret, "********"), String(text))
        .replaceAll(/\p{Cc}+/gu, " ")
        .slice(0, maxSaidChars)}`
}

/** True for an answer that says: too much, come again later. GitHub says so with 403, too. */
const asksToWait = ({ headers, status }: Answered): boolean =>
  status === 429 ||
  (status === 403 &&
    (headers["x-ratelimit-remaining"] === "0" || headers["retry-after"] !== undefined))

/** Returns how long an answer says to wait, ms; undefined where it says nothing. */
export const toldPauseMs = (headers: ApiAnswer["headers"], now: number): number | undefined => {
  const after = parseRetryAfter(headers["retry-after"], now)
  if (after !== undefined) return after
  const reset = Number(headers["x-ratelimit-reset"] ?? headers["ratelimit-reset"])
  if (!Number.isFinite(reset) || reset <= 0) return undefined
  // Some say when, in seconds since the epoch, and some how long.
  return reset > 1e9 ? Math.max(0, reset * 1_000 - now) : reset * 1_000
}

const refusedText = ({ status }: Answered): string =>
  status === 401 || status === 403
    ? "refuses the credentials, or what they may read"
    : status === 404
      ? "has nothing there: is the right webhook named?"
      : "refuses the request"

/** An issuer that is not known here: an authority of the operator's own, or a chain that is not sent. */
const unknownIssuer = /^(UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/

const isSilence = (error: unknown): boolean =>
  error instanceof Error && error.name === "TimeoutError"

/** Why a request was not answered, in a few words. */
const whyOf = (error: unknown, answerWithinMs: number): string => {
  if (isSilence(error)) return `no answer within ${answerWithinMs / 1_000} s`
  const { class: kind, message } = failureOf(error, false)
  if (kind === "handshake") return message
  if (kind === "certificate")
    return unknownIssuer.test(Object(error).code)
      ? `${message} (an authority of your own is to be named in NODE_EXTRA_CA_CERTS)`
      : message
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return cause instanceof Error ? cause.message : String(cause)
}

const roundedMs = (ms: number): number => Math.max(1, Math.round(ms / 1_000)) * 1_000

/** Makes what asks an API, at most so often. */
export const makeApi = (options: ApiOptions): Api => {
  const {
    answerWithinMs = usualAnswerWithinMs,
    firstPauseMs = usualFirstPauseMs,
    onWait = Effect.logDebug,
    perSecond,
    title
  } = options
  let nextAt = timers.monotonicMs()
  /** Waits until the next request may be sent. */
  const turn = Effect.suspend(() => {
    const now = timers.monotonicMs()
    const at = Math.max(now, nextAt)
    nextAt = at + 1_000 / perSecond
    return at > now ? Effect.sleep(at - now) : Effect.void
  })
  const sent = (request: ApiRequest, authorization: Readonly<Record<string, string>>) =>
    Effect.tryPromise({
      try: (signal) =>
        sendOnce(
          options,
          request,
          authorization,
          AbortSignal.any([signal, AbortSignal.timeout(answerWithinMs)])
        ),
      catch: (error) => error
    })
  /** Sends a request, and says so where its answer takes long. */
  const answered = (request: ApiRequest, authorization: Readonly<Record<string, string>>) =>
    Effect.raceFirst(
      Effect.result(sent(request, authorization)),
      Effect.sleep(silentAnswerMs).pipe(
        Effect.andThen(
          onWait(
            `${title} has not answered for ${spanText(silentAnswerMs)}: waiting for up to ${spanText(answerWithinMs)}`
          )
        ),
        Effect.andThen(Effect.never)
      )
    )
  const plainPauseMs = (tries: number): number =>
    Math.min(firstPauseMs * 2 ** (tries - 1), maxPauseMs)
  /** @param drawn from 0 to 1. */
  const pauseOf = (tries: number, drawn: number): number => plainPauseMs(tries) * (0.75 + drawn / 2)
  /**
   * Says what the next try waits for, ms, and when the last one is, as far as that is known.
   *
   * @param eachMs how long each try may take.
   */
  const waiting = (why: string, tries: number, pauseMs: number, eachMs: number): string => {
    let restMs = pauseMs + (maxTries - tries) * eachMs
    for (let next = tries + 1; next < maxTries; next++) restMs += plainPauseMs(next)
    const nextText = spanText(roundedMs(pauseMs))
    const left = maxTries - tries
    return left === 1
      ? `${why}; last try in ${nextText}`
      : `${why}; next try in ${nextText}, ${left} tries left within ${spanText(roundedMs(restMs))}`
  }

  const ask: Api["ask"] = Effect.fnUntraced(function* (request, authorization) {
    const askedAt = timers.monotonicMs()
    const credentials = credentialsIn({
      ...authorization,
      login: request.headers?.authorization
    })
    for (let tries = 1; ; tries++) {
      yield* turn
      const result = yield* answered(request, authorization)
      let why: string
      let pauseMs = pauseOf(tries, yield* Random.next)
      let eachMs = 0
      if (result._tag === "Failure") {
        const error = result.failure
        if (error instanceof ApiFailed) return yield* error
        if (error instanceof AddressRefused)
          return yield* new ApiFailed({
            message: `nothing is sent to ${new URL(options.url).host}: ${error.message}; if this is intended, allow its network`
          })
        why = `${title} cannot be reached: ${whyOf(error, answerWithinMs)}`
        // It does not pass by itself.
        if (failureOf(error, false).class === "certificate")
          return yield* new ApiFailed({ message: why })
        if (isSilence(error)) eachMs = answerWithinMs
      } else {
        const answer = result.success
        const { status } = answer
        if (status >= 200 && status < 300) return answer
        why = `${title} answers ${status}${said(answer, credentials)}`
        const mayPass = asksToWait(answer) || status >= 500 || status === 408
        if (!mayPass)
          return yield* new ApiFailed({
            status,
            message: `${title} ${refusedText(answer)} (${status}${said(answer, credentials)})`
          })
        const toldMs = toldPauseMs(answer.headers, timers.wallMs())
        if (toldMs !== undefined && toldMs > maxToldPauseMs)
          return yield* new ApiFailed({
            status,
            message: `${why}, and says to come again in ${Math.ceil(toldMs / 60_000)} minutes`
          })
        pauseMs = Math.max(pauseMs, toldMs ?? 0)
      }
      if (tries === maxTries)
        return yield* new ApiFailed({ message: `${why}; it was asked ${tries} times` })
      if (timers.monotonicMs() - askedAt + pauseMs > silentPausesMs)
        yield* onWait(waiting(why, tries, pauseMs, eachMs))
      yield* Effect.sleep(pauseMs)
    }
  })
  return { ask }
}
