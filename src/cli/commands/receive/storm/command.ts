import { readFile } from "node:fs/promises"
import { Duration, Effect, Random } from "effect"
import { makeCertificates } from "../../../../intake/gateway/certificates.ts"
import { signedUrl } from "../../../../providers/settings.ts"
import { countText, plural, spanText } from "../../../../text/quantities.ts"
import { timers } from "../../../../time/timers.ts"
import {
  boundedFlag,
  durationFlag,
  maybe,
  receiverUrlFlag,
  textFlag
} from "../../../flags/shared.ts"
import { makeTable } from "../../../format/screen.ts"
import { Refused, refusal } from "../../../refused.ts"
import { petrel } from "../../../root-command.ts"
import { untilStopped } from "../../../terminal/signals.ts"
import { print, remark } from "../../../terminal/stdout.ts"
import { type GivenProvider, readProvider } from "../provider-flags.ts"
import { expected, type Kind } from "./plan.ts"
import { senderOf, signedBy } from "./senders.ts"
import type { StormReport } from "./storm.ts"
import { storm } from "./storm.ts"

const kindTexts: Readonly<Record<Kind, string>> = {
  first: "each event, out of order",
  repeat: "the same event again",
  stale: "signed an hour ago",
  future: "signed an hour ahead",
  unsigned: "without a signature",
  foreign: "signed with another secret",
  forged: "changed after it was signed",
  aborted: "cut off in its body",
  oversized: "a huge body"
}

/** Returns numbers of something with what it is, the most frequent first. */
const countsText = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .sort(([, one], [, other]) => other - one)
    .map(([what, count]) => `${countText(count)} × ${what}`)
    .join(", ")

/** Returns what a receiver did in a storm, as lines. */
const stormLines = (report: StormReport): ReadonlyArray<string> => {
  const { elapsedMs, events, faults, ids, isCutShort, kinds, requests, taken, unanswered } = report
  const rows = Object.entries(kindTexts).flatMap(([word, text]) => {
    const kind = word as Kind
    const found = kinds[kind]
    if (found === undefined) return []
    const should = expected[kind] ?? "no matter"
    const shown = kind === "aborted" ? "" : countsText(found.answers)
    const times = kind === "aborted" ? ["", ""] : [`${found.p50Ms} ms`, `${found.p99Ms} ms`]
    return [[text, should, countText(found.sent), ...times, shown]]
  })
  return [
    ...makeTable(["requests", "should be", "sent", "p50", "p99", "answers"]).lines(rows),
    "",
    `${plural(requests, "request")} in ${spanText(elapsedMs)}${isCutShort ? "; the time was over before all were sent" : ""}.`,
    `${countText(taken)} of ${plural(events, "event")} were taken. Their ids are ${ids}-0 to ${ids}-${events - 1}: each must have had its effect once. Forged requests have a word before such an id and must have had no effect.`,
    ...(Object.keys(unanswered).length === 0 ? [] : [`No answer: ${countsText(unanswered)}.`]),
    ...(faults.length === 0
      ? ["Nothing was taken that should not be."]
      : faults.map((fault) => `NOT RIGHT: ${fault}.`))
  ]
}

const maxFor = Duration.minutes(10)

/** Flags of a storm. */
export const stormFlags = {
  storm: receiverUrlFlag(
    "storm",
    "Receives nothing, but sends to this receiver what a sender in trouble does: repeats, at the same time too, events out of order, old and forged requests, cut off and huge bodies"
  ),
  count: boundedFlag("count", "N", "Events of a storm (default: 200)", [1, 100_000]),
  concurrency: boundedFlag(
    "concurrency",
    "N",
    "Its requests at the same time (default: 16)",
    [1, 256]
  ),
  for: durationFlag("for", "How long it lasts at most (default: 1 minute)", {
    most: Duration.toMillis(maxFor),
    problem: "must be at most 10 minutes"
  }).pipe(maybe),
  type: textFlag("type", "TYPE", "The type of its events (default: storm.tested)"),
  body: textFlag("body", "FILE", "A JSON object that its bodies are made of"),
  huge: boundedFlag(
    "huge",
    "MIB",
    "The size of the one body that is too large (default: 32); 0: none",
    [0, 1_024]
  ),
  seed: boundedFlag("seed", "N", "The same number makes the same storm", [0, 4_294_967_295])
}

/** What the flags of a storm gave, with those of the provider. */
interface GivenStorm extends GivenProvider {
  readonly count: number | undefined
  readonly concurrency: number | undefined
  readonly for: Duration.Duration | undefined
  readonly type: string | undefined
  readonly body: string | undefined
  readonly huge: number | undefined
  readonly seed: number | undefined
}

const readTemplate = Effect.fnUntraced(function* (file: string | undefined) {
  if (file === undefined) return {}
  const text = yield* Effect.tryPromise({
    try: () => readFile(file, "utf8"),
    catch: (error) => refusal([`--body: ${error instanceof Error ? error.message : String(error)}`])
  })
  const read = yield* Effect.try({
    try: (): unknown => JSON.parse(text),
    catch: () => refusal([`--body ${file} must be a JSON object`])
  })
  return typeof read === "object" && read !== null && !Array.isArray(read)
    ? (read as Readonly<Record<string, unknown>>)
    : yield* refusal([`--body ${file} must be a JSON object`])
})

/** Returns the provider, how it signs, and the URL that it signs. */
const readSender = Effect.fnUntraced(function* (url: string, given: GivenStorm) {
  const name = given.provider ?? "petrel"
  const [base = url] = url.split("?")
  const signsUrl =
    ["twilio", "square", "hubspot"].includes(name) || given.scheme?.includes("{url}") === true
  const publicUrl = given.publicUrl ?? (signsUrl ? base : undefined)
  const verified = yield* readProvider(
    { ...given, provider: name, publicUrl },
    makeCertificates(() => timers.wallMs())
  )
  if (verified === undefined) return yield* refusal(["--provider is missing"])
  const { known, settings } = verified
  const sender = senderOf(name, settings)
  const [secret] = given.secret
  if (sender === undefined || secret === undefined)
    return yield* refusal([
      `only ${known.title} can sign its requests: a storm needs a provider whose receivers know the secret`
    ])
  if (secret.startsWith("whpk_"))
    return yield* refusal(["--secret must be the secret that signs, not a public key"])
  const signs = signedBy(known, settings, secret)
  return { known, sender, secret, signs, publicUrl: signedUrl(publicUrl ?? base, url) }
})

/** Sends a storm to a receiver, prints what it did, and fails if something is not right. */
export const sendStorm = Effect.fnUntraced(function* (url: string, given: GivenStorm) {
  const { json } = yield* petrel
  const { known, publicUrl, secret, sender, signs } = yield* readSender(url, given)
  const template = yield* readTemplate(given.body)
  const seed = given.seed ?? (yield* Random.nextIntBetween(0, 4_294_967_295))
  const options = {
    ...{ url, publicUrl, sender, secret, signs, template, seed },
    type: given.type ?? "storm.tested",
    count: given.count ?? 200,
    concurrency: given.concurrency ?? 16,
    hugeBytes: (given.huge ?? 32) * 1024 * 1024,
    forMs: Duration.toMillis(given.for ?? Duration.minutes(1))
  }
  if (!json)
    yield* remark(
      `Sends ${plural(options.count, "event")} as ${known.title} does to ${url}, for ${spanText(options.forMs)} at most (--seed ${seed}).`
    )
  const report = yield* untilStopped(Effect.promise((signal) => storm(options, signal)))
  if (json)
    yield* print(JSON.stringify({ event: "storm", url, provider: known.name, seed, ...report }))
  else for (const line of stormLines(report)) yield* print(line)
  const { faults } = report
  if (faults.length > 0)
    return yield* new Refused({
      message: `the receiver does not do what it should: ${plural(faults.length, "fault")}`
    })
})
