import { styleText } from "node:util"
import { Duration, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { timeText } from "../../../domain/timestamp.ts"
import { publicKeyOf, secretProblem } from "../../../endpoints/signing.ts"
import type { Verification } from "../../../endpoints/verification.ts"
import { makeCertificates } from "../../../intake/gateway/certificates.ts"
import { plainText } from "../../../text/plain-text.ts"
import { bytesText, countText, localTime, plural, spanText } from "../../../text/quantities.ts"
import { timers } from "../../../time/timers.ts"
import { withFlags } from "../../flags/flag-problems.ts"
import {
  boundedFlag,
  durationFlag,
  isSet,
  maybe,
  receiverUrlFlag,
  repeated
} from "../../flags/shared.ts"
import { shownBody } from "../../format/answer.ts"
import { visible, visibleInColours } from "../../format/visible.ts"
import { refusal } from "../../refused.ts"
import { petrel } from "../../root-command.ts"
import { makeCountedOutput } from "../../terminal/counted-output.ts"
import { untilStopped } from "../../terminal/signals.ts"
import { coloured, Output, print, remark } from "../../terminal/stdout.ts"
import { judgeByProvider, judgeByScheme } from "./judgement.ts"
import { providerFlags, readProvider } from "./provider-flags.ts"
import {
  type HandledRequest,
  misbehaviourProblems,
  type ReceivedCounts,
  Receiver,
  receiveRequests
} from "./receiver.ts"
import { sendStorm, stormFlags } from "./storm/command.ts"

const signatureText = (signature: Verification): string => {
  switch (signature.result) {
    case "good":
      return `signature good (${signature.scheme})`
    case "bad":
      return `SIGNATURE BAD (${signature.scheme}): ${signature.why}`
    case "unchecked":
      return `${signature.scheme} signature, not checked`
    case "unsigned":
      return "not signed"
  }
}

const isGood = (status: number | undefined): boolean =>
  status !== undefined && status >= 200 && status < 300

/** Returns a request as one line. */
const requestLine = (request: HandledRequest, colour: boolean): string => {
  const { at, attempt, bytes, delayMs, event, events, method, path, seen } = request
  const { signature, status, type, unreadable } = request
  const answer = status === undefined ? "no answer" : String(status)
  const hue = isGood(status) ? "green" : "red"
  const painted = colour ? styleText(hue, answer, { validateStream: false }) : answer
  return [
    localTime(at, at),
    painted,
    `${method} ${plainText(path)}`,
    plainText(unreadable ?? type ?? "(no type)"),
    plainText(event ?? "(no id)"),
    ...(events === undefined ? [] : [plural(events, "event")]),
    ...(attempt === undefined ? [] : [`attempt ${attempt}`]),
    ...(seen === 0 ? [] : [`seen ${plural(seen, "time")} before`]),
    bytesText(bytes),
    signatureText(signature),
    ...(delayMs === 0 ? [] : [`after ${spanText(delayMs)}`])
  ].join("  ")
}

/** Returns what was received in all, as one line. */
const countsLine = ({
  answers,
  badSignatures,
  events,
  repeats,
  requests
}: ReceivedCounts): string => {
  const each = Object.entries(answers).map(([answer, count]) => `${countText(count)} × ${answer}`)
  return [
    plural(requests, "request"),
    plural(events, "event"),
    plural(repeats, "repeat"),
    `${countText(badSignatures)} bad ${badSignatures === 1 ? "signature" : "signatures"}`,
    ...(each.length === 0 ? [] : [`answered ${each.join(", ")}`])
  ].join(", ")
}

const duration = (name: string, description: string) =>
  durationFlag(name, description).pipe(Flag.map(Duration.toMillis), maybe)

const flags = {
  port: Flag.Int("port").pipe(
    Flag.withMetavar("PORT"),
    Flag.withDescription("Where it listens; 0 takes a free port (default: 3000)"),
    Flag.filterMap(
      (port) => (port >= 0 && port <= 65_535 ? Option.some(port) : Option.none()),
      () => "must be a port from 0 to 65535"
    ),
    Flag.withDefault(3_000)
  ),
  host: Flag.String("host").pipe(
    Flag.withMetavar("ADDRESS"),
    Flag.withDescription("The address that it listens on (default: 127.0.0.1)"),
    Flag.withDefault("127.0.0.1")
  ),
  secret: repeated(
    "secret",
    "SECRET",
    "Verifies signatures with it, without --provider those of any of Petrel's schemes; a public key (whpk_…) as well; may be repeated"
  ),
  tolerance: duration(
    "tolerance",
    "How far the signed time may be off (default: 5 minutes, or what the provider allows)"
  ),
  fail: boundedFlag("fail", "N", "The first N requests of each event fail", [1, 1_000_000]),
  percent: boundedFlag("percent", "P", "P% of all requests fail, by chance", [1, 100]),
  status: boundedFlag(
    "status",
    "STATUS",
    "Of requests that fail; without --fail and --percent, of all (default: 500, 200)",
    [200, 599]
  ),
  retryAfter: boundedFlag("retry-after", "SECONDS", "Sent with each failure", [0, 31_536_000]),
  delay: duration("delay", "Hold each answer back for this long"),
  drop: isSet("drop", "Close the connection instead of answering"),
  forward: receiverUrlFlag(
    "forward",
    "Pass the other requests on to this URL, and give its answer"
  ),
  showBody: isSet("show-body", "Show the body of each request"),
  quiet: isSet("quiet", "Print only the counts at the end"),
  ...providerFlags,
  ...stormFlags
}

/** Returns why a secret can verify nothing; undefined where it may. */
const keyProblem = (key: string): string | undefined => {
  if (key.startsWith("whpk_")) return undefined
  if (key.startsWith("whsk_")) return publicKeyOf(key) === undefined ? "bad" : undefined
  return secretProblem("stripe", key) === undefined ? undefined : "bad"
}

interface Printing {
  readonly json: boolean
  readonly quiet: boolean
  readonly showBody: boolean
}

/** Returns what prints each request. */
const makePrinter = Effect.fnUntraced(function* ({ json, quiet, showBody }: Printing) {
  const { stdout } = yield* Output
  const counted = yield* makeCountedOutput
  const colour = coloured()
  const fit = colour ? visibleInColours : visible
  return (request: HandledRequest, body: Buffer): void => {
    if (quiet) return
    if (json) {
      stdout.write(`${JSON.stringify({ ...request, at: timeText(request.at) })}\n`)
      return
    }
    const answer = request.status === undefined ? "without an answer" : `answered ${request.status}`
    if (!counted.note(answer)) return
    const lines = [requestLine(request, colour), ...(showBody ? shownBody(body).lines : [])]
    stdout.write(lines.map((line) => `${fit(line)}\n`).join(""))
  }
})

/** What the flags gave. */
type Given = Command.Command.Config.Infer<typeof flags>

/** Flags of a receiver, which a storm has no use for. */
const ofReceivers = ["fail", "percent", "status", "retryAfter", "delay", "forward"] as const

/** Returns what makes no sense of the flags. */
const flagProblemsIn = (given: Given): ReadonlyArray<string> => {
  const { fail, percent, provider, secret, storm } = given
  if (storm === undefined) {
    const alone = (["count", "concurrency", "for", "type", "body", "huge", "seed"] as const).filter(
      (name) => given[name] !== undefined
    )
    return [
      ...misbehaviourProblems({ ...given, failFirst: fail, percent }).map(withFlags),
      ...alone.map((name) => `--${name} goes with --storm`),
      ...(provider === undefined && secret.some((key) => keyProblem(key) !== undefined)
        ? ["--secret must be a secret as `petrel endpoint add` prints it, or a public key (whpk_…)"]
        : [])
    ]
  }
  const names = ofReceivers.filter((name) => given[name] !== undefined)
  const found = [...names, ...(given.drop ? ["drop"] : []), ...(given.showBody ? ["showBody"] : [])]
  return found.map((name) => withFlags(`\`${name}\` is for a receiver, and --storm sends to one`))
}

/** Receives events in staging, and behaves as badly as told. */
export const receive = Command.make(
  "receive",
  flags,
  Effect.fnUntraced(function* (given) {
    const problems = flagProblemsIn(given)
    if (problems.length > 0) return yield* refusal(problems)
    const { delay = 0, drop, fail, forward, host, percent, port, secret, status } = given
    const { quiet, retryAfter, showBody, storm, tolerance } = given
    if (storm !== undefined) return yield* sendStorm(storm, given)
    const { json } = yield* petrel
    const verified = yield* readProvider(
      given,
      makeCertificates(() => timers.wallMs())
    )
    const receiver = yield* Receiver.make({
      misbehaviour: { ...{ drop, percent, retryAfter, status }, failFirst: fail },
      judge:
        verified === undefined
          ? judgeByScheme({ secrets: secret, toleranceSeconds: (tolerance ?? 300_000) / 1_000 })
          : judgeByProvider(verified.provider),
      delayMs: delay,
      forward,
      onHandled: yield* makePrinter({ json, quiet, showBody })
    })
    const taken = yield* receiveRequests({ host, port }, receiver.receive)
    const url = `http://${host.includes(":") ? `[${host}]` : host}:${taken}/`
    if (json) yield* print(JSON.stringify({ event: "ready", url }))
    else {
      yield* remark(`Receives on ${url} until Ctrl-C. What sends there:`)
      yield* remark(
        verified === undefined
          ? `  petrel endpoint add default/staging --url ${url}`
          : `  ${verified.known.title}, through a tunnel or a proxy that leads here`
      )
      if (verified === undefined && secret.length === 0)
        yield* remark("Signatures are not checked: --secret gives what `endpoint add` prints.")
    }
    const counts = Effect.suspend(() =>
      json
        ? print(JSON.stringify({ event: "stopped", ...receiver.counts }))
        : print(`\n${countsLine(receiver.counts)}`)
    )
    return yield* untilStopped(Effect.onInterrupt(Effect.never, () => Effect.ignore(counts)))
  }, Effect.scoped)
).pipe(
  Command.withDescription(
    "A receiver for staging: prints requests, verifies signatures of Petrel and of other providers, counts repeats, and misbehaves on request"
  ),
  Command.withShortDescription("A receiver for staging that misbehaves on request"),
  Command.withExamples([
    { command: "petrel receive --port 3000 --secret whsec_…" },
    {
      command: "petrel receive --fail 2 --status 429 --retry-after 30",
      description: "Each event is refused twice"
    },
    { command: "petrel receive --percent 10 --drop", description: "One of ten gets no answer" },
    {
      command: "petrel receive --provider stripe --secret whsec_…",
      description: "Webhooks of Stripe are verified and read"
    },
    {
      command: "petrel receive --storm http://127.0.0.1:8080/hooks --secret whsec_…",
      description: "A receiver is sent repeats, forged requests and broken ones"
    }
  ])
)
