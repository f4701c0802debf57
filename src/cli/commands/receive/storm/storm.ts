import { setTimeout as sleep } from "node:timers/promises"
import { plural } from "../../../../text/quantities.ts"
import { expected, type Kind, type Planned, plan, randomFrom } from "./plan.ts"
import type { Sender, Signed, SignedRequest } from "./senders.ts"
import { type Answer, Transport } from "./transport.ts"

export interface StormOptions {
  readonly url: string
  /** What the provider was given as the URL, where it signs that. */
  readonly publicUrl: string
  readonly sender: Sender
  readonly secret: string
  readonly signs: Signed
  /** Of the events' type. */
  readonly type: string
  /** What bodies hold besides. */
  readonly template: Readonly<Record<string, unknown>>
  /** Of events. */
  readonly count: number
  readonly concurrency: number
  /** Of the body of the last request, which no receiver should take; 0 sends none. */
  readonly hugeBytes: number
  /** After how long it ends, ms. */
  readonly forMs: number
  /** The same seed makes the same storm. */
  readonly seed: number
}

/** What came of the requests of a kind. */
export interface KindReport {
  readonly sent: number
  /** By status, or `no answer`. */
  readonly answers: Readonly<Record<string, number>>
  readonly p50Ms: number
  readonly p99Ms: number
}

/** What a receiver did in a storm. */
export interface StormReport {
  /** Events of which a request was answered with 2xx, of those that were sent. */
  readonly taken: number
  readonly events: number
  /** Requests in all, also those that were sent again after an answer that asks for it. */
  readonly requests: number
  readonly kinds: Readonly<Partial<Record<Kind, KindReport>>>
  /** Why requests had no answer, and how many. */
  readonly unanswered: Readonly<Record<string, number>>
  /** What should not be, one sentence each. */
  readonly faults: ReadonlyArray<string>
  readonly elapsedMs: number
  /** The ids of events begin so. */
  readonly ids: string
  /** The time was over before all was sent. */
  readonly isCutShort: boolean
}

/** Ids and subjects begin with it. */
const idWord = "storm"
const hourMs = 3_600_000
/** Requests for an event until it is taken, as of a sender that tries again. */
const maxAttempts = 8
const maxPauseMs = 2_000

const isTaken = ({ status }: Answer): boolean =>
  status !== undefined && status >= 200 && status < 300

/** Whether a sender gives an event up after this answer: many do after any 4xx but these. */
const isRefused = ({ status }: Answer): boolean =>
  status !== undefined && status >= 400 && status < 500 && status !== 408 && status !== 429

const answerText = ({ status }: Answer): string =>
  status === undefined ? "no answer" : String(status)

const percentile = (sorted: ReadonlyArray<number>, share: number): number =>
  Math.round((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0) * 10) /
  10

class Tally {
  readonly #answers = new Map<Kind, Array<Answer>>()

  note(kind: Kind, answer: Answer): void {
    const known = this.#answers.get(kind)
    if (known === undefined) this.#answers.set(kind, [answer])
    else known.push(answer)
  }

  of(kind: Kind): ReadonlyArray<Answer> {
    return this.#answers.get(kind) ?? []
  }

  get requests(): number {
    return [...this.#answers.values()].reduce((sum, { length }) => sum + length, 0)
  }

  get unanswered(): StormReport["unanswered"] {
    const problems = [...this.#answers.values()].flat().flatMap(({ problem = [] }) => problem)
    return Object.fromEntries(
      [...Map.groupBy(problems, (text) => text)].map(([text, { length }]) => [text, length])
    )
  }

  get kinds(): StormReport["kinds"] {
    return Object.fromEntries(
      [...this.#answers].map(([kind, answers]) => {
        const sorted = answers.map(({ ms }) => ms).sort((a, b) => a - b)
        const counts = Map.groupBy(answers, answerText)
        const report: KindReport = {
          sent: answers.length,
          answers: Object.fromEntries([...counts].map(([text, { length }]) => [text, length])),
          p50Ms: percentile(sorted, 0.5),
          p99Ms: percentile(sorted, 0.99)
        }
        return [kind, report]
      })
    )
  }
}

const wrongs: Readonly<Partial<Record<Kind, string>>> = {
  stale: "that were signed an hour ago",
  future: "that were signed an hour ahead of time",
  unsigned: "without a signature",
  foreign: "that were signed with another secret",
  forged: "whose body was changed after it was signed",
  oversized: "with a huge body"
}

/** Returns a secret of the same form that is another one. */
const otherThan = (secret: string): string =>
  secret.startsWith("whsec_")
    ? `whsec_${Buffer.from(`storm ${secret}`).toString("base64")}`
    : `storm ${secret}`

const signatureForm = /signature|hmac|x-gitlab-token/

const withoutSignature = ({ body, headers, signatureHeader }: SignedRequest): SignedRequest => {
  const isSignature = (name: string) =>
    signatureHeader === undefined ? signatureForm.test(name) : name === signatureHeader
  const kept = Object.entries(headers).filter(([name]) => !isSignature(name))
  if (kept.length < Object.keys(headers).length) return { body, headers: Object.fromEntries(kept) }
  const { signature: _, ...rest } = JSON.parse(body.toString())
  return { headers, body: Buffer.from(JSON.stringify(rest)) }
}

/** Changes a letter of an id or a subject, so that the body has the same form. */
const changed = (body: Buffer): Buffer => {
  const made = Buffer.from(body)
  const place = made.lastIndexOf(idWord)
  made[Math.max(0, place)] = (made[Math.max(0, place)] ?? 0) ^ 1
  return made
}

/** Makes a request of the storm at a time, ms. */
const makeRequest = (options: StormOptions, { event, kind }: Planned, nowMs: number) => {
  const { publicUrl: url, secret, sender, template } = options
  const now = Math.floor(nowMs / 1_000) * 1_000
  const at = kind === "stale" ? now - hourMs : kind === "future" ? now + hourMs : now
  const signing = { at, url, secret: kind === "foreign" ? otherThan(secret) : secret }
  const held =
    kind === "oversized" ? { ...template, filler: "a".repeat(options.hugeBytes) } : template
  const made = sender(event, held, signing)
  if (kind === "unsigned") return withoutSignature(made)
  return kind === "forged" ? { ...made, body: changed(made.body) } : made
}

interface Ended {
  /** Events that were taken. */
  readonly taken: number
  /** Events that were sent as often as they may be, and never taken. */
  readonly missed: number
  readonly isCutShort: boolean
  /** Whether a good request at the end was taken. */
  readonly isAlive: boolean
}

const faultsOf = (tally: Tally, { isAlive, isCutShort, missed, taken }: Ended) => {
  const faults: Array<string> = []
  for (const [word, text] of Object.entries(wrongs)) {
    const answers = tally.of(word as Kind)
    const wrong = answers.filter(isTaken).length
    if (wrong > 0) faults.push(`it took ${wrong} of ${plural(answers.length, "request")} ${text}`)
  }
  for (const kind of ["first", "repeat"] as const) {
    const refused = tally.of(kind).filter(isRefused)
    const statuses = [...new Set(refused.map(answerText))].join(", ")
    const what = plural(refused.length, kind === "first" ? "good request" : "repeat")
    if (refused.length > 0)
      faults.push(`it refused ${what} (${statuses}): a sender may not come again`)
  }
  if (missed > 0)
    faults.push(`it never took ${plural(missed, "event")}, in ${maxAttempts} requests each`)
  else if (isCutShort && taken === 0) faults.push("it took no event in all that time")
  if (!isAlive) faults.push("it did not take a good request at the end")
  return faults
}

/** One storm under way. */
class Storm {
  readonly #options: StormOptions
  readonly #transport: Transport
  readonly #signal: AbortSignal
  readonly #tally = new Tally()
  readonly #taken = new Set<string>()
  readonly #givenUp = new Set<string>()

  constructor(options: StormOptions, transport: Transport, signal: AbortSignal) {
    this.#options = options
    this.#transport = transport
    this.#signal = signal
  }

  async run(planned: ReadonlyArray<Planned>): Promise<Omit<StormReport, "elapsedMs" | "ids">> {
    const events = this.#options.count
    let next = 0
    const work = async (): Promise<void> => {
      while (next < planned.length && !this.#signal.aborted) {
        const one = planned[next]
        next += 1
        if (one !== undefined) await this.#apply(one)
      }
    }
    await Promise.all(Array.from({ length: this.#options.concurrency }, work))
    const last = planned.find(({ kind }) => kind === "first")
    // At last, so that what it takes to send it is not in the times of the others.
    if (this.#options.hugeBytes > 0 && last !== undefined && !this.#signal.aborted)
      await this.#once({ kind: "oversized", event: { ...last.event, id: `huge-${last.event.id}` } })
    const isCutShort = this.#signal.aborted
    const isAlive = isCutShort || last === undefined || (await this.#isTakenAgain(last))
    const taken = this.#taken.size
    // What the end of the storm cut off says nothing of the receiver.
    const missed = isCutShort
      ? [...this.#givenUp].filter((id) => !this.#taken.has(id)).length
      : events - taken
    return {
      taken,
      events,
      isCutShort,
      requests: this.#tally.requests,
      kinds: this.#tally.kinds,
      unanswered: this.#tally.unanswered,
      faults: faultsOf(this.#tally, { taken, missed, isCutShort, isAlive })
    }
  }

  async #apply(one: Planned): Promise<void> {
    if (one.kind === "aborted") {
      await this.#transport.abort(makeRequest(this.#options, one, Date.now()))
      this.#tally.note("aborted", { status: undefined, ms: 0 })
    } else if (expected[one.kind] === "taken") await this.#untilTaken(one)
    else await this.#once(one)
  }

  async #once(one: Planned): Promise<Answer> {
    const answer = await this.#transport.send(
      makeRequest(this.#options, one, Date.now()),
      this.#signal
    )
    // What the end of the storm cut off says nothing of the receiver.
    if (!this.#signal.aborted) this.#tally.note(one.kind, answer)
    return answer
  }

  /** Sends a good request as a sender does: again after an answer that asks for it, or after none. */
  async #untilTaken(one: Planned): Promise<void> {
    for (let attempt = 0; attempt < maxAttempts && !this.#signal.aborted; attempt += 1) {
      const answer = await this.#once(one)
      if (isTaken(answer)) {
        this.#taken.add(one.event.id)
        return
      }
      if (isRefused(answer)) return
      const pauseMs = Math.min(maxPauseMs, answer.retryAfterMs ?? 50 * 2 ** attempt)
      await sleep(pauseMs, undefined, { signal: this.#signal }).catch(() => undefined)
    }
    if (!this.#signal.aborted) this.#givenUp.add(one.event.id)
  }

  async #isTakenAgain(one: Planned): Promise<boolean> {
    const repeat: Planned = { ...one, kind: "repeat" }
    await this.#untilTaken(repeat)
    return isTaken(this.#tally.of("repeat").at(-1) ?? { status: undefined, ms: 0 })
  }
}

/**
 * Sends a storm of requests to a receiver, and returns what it did with them. Ends at the latest
 * after `forMs`, or once the signal aborts.
 */
export const storm = async (options: StormOptions, signal: AbortSignal): Promise<StormReport> => {
  const { concurrency, count, forMs, seed, signs, type, url } = options
  const begun = performance.now()
  const ids = `${idWord}-${seed}`
  const planned = plan(
    { count, type, name: ids, from: Date.now() - count * 1_000 },
    signs,
    randomFrom(seed)
  )
  const transport = new Transport(url, concurrency)
  try {
    const ended = AbortSignal.any([signal, AbortSignal.timeout(forMs)])
    const made = await new Storm(options, transport, ended).run(planned)
    return { ...made, ids, elapsedMs: Math.round(performance.now() - begun) }
  } finally {
    await transport.close()
  }
}
