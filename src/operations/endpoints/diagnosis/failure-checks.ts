import type { Fact } from "../../../domain/fact.ts"
import type { ErrorClass } from "../../../domain/outcome.ts"
import { plainText } from "../../../history/line.ts"
import { spanText } from "../../../history/span.ts"
import { parseRetryAfter } from "../../../policy/retry-after.ts"
import { countText, plural } from "../../text/number-format.ts"
import { moment } from "../../text/time.ts"
import type { Check } from "./check.ts"
import { errorAdvice, statusAdvice } from "./failure-advice.ts"
import type { Findings } from "./findings.ts"

/** Whether the worker can connect to the receiver now. */
export type Way = "blocked" | "free" | "unknown"

/** Characters of an answer that are shown. */
const maxAnswerLength = 160

/** What an attempt came to, as a status or an error class. */
const outcomeOf = ({ error, status }: Fact): string => error?.class ?? String(status ?? "no answer")

/** Returns how often each outcome occurred, the most frequent first: `18 × 500, 2 × timeout`. */
const countsText = (failures: ReadonlyArray<Fact>): string => {
  const counts = new Map<string, number>()
  for (const failure of failures) {
    const outcome = outcomeOf(failure)
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
  }
  return [...counts]
    .toSorted(([, one], [, other]) => other - one)
    .map(([outcome, count]) => `${count} × ${outcome}`)
    .join(", ")
}

/** Returns what the receiver said, or why there was no answer, in one line. */
const answerText = ({ error, response }: Fact): string => {
  const location = response?.headers.location
  const said = location === undefined ? (response?.body ?? "") : `to ${location}`
  const text = plainText(error?.message ?? said).trim()
  return text.length <= maxAnswerLength ? text : `${text.slice(0, maxAnswerLength - 1)}…`
}

/** Errors on the way to the receiver, which the check of the connection meets as well. */
const onTheWay: ReadonlySet<ErrorClass> = new Set([
  ...(["address", "certificate", "connect-timeout", "dns"] as const),
  ...(["handshake", "refused", "unreachable"] as const)
])

/** Up to so many requests before a 429 are not called too fast: in its minute, and its second. */
const slow = { inMinute: 10, inSecond: 2 }

/** Returns what to do about a failure; undefined where another check says it. */
const adviceFor = (
  { error, response, status = 0 }: Fact,
  { endpoint, rate }: Findings,
  way: Way
): string | undefined => {
  const { disabled, id: endpointId, paused, suspended, tenant } = endpoint
  const name = `${tenant}/${endpointId}`
  const goesOn = disabled === undefined && suspended === undefined && paused === undefined
  if (error !== undefined) {
    if (!onTheWay.has(error.class) || way === "unknown") return errorAdvice(error.class, name)
    return way === "blocked" || !goesOn
      ? undefined
      : `The way to it works now: do not wait for the next attempt, try now (\`petrel endpoint retry-now ${name}\`).`
  }
  if (status === 429 && rate !== undefined) return undefined
  const advice = statusAdvice(status, name, goesOn)
  const id = response?.headers["x-request-id"]
  return id === undefined
    ? advice
    : `${advice} The receiver's id of that request: ${plainText(id)}.`
}

const failuresCheck = (findings: Findings, way: Way, now: number): Check => {
  const { deliveredAt, failures } = findings.attempts
  const last = failures.at(-1)
  const well =
    deliveredAt === undefined
      ? "nothing was delivered"
      : `last delivered at ${moment(deliveredAt, now)}`
  if (last === undefined)
    return { name: "failures", result: "ok", says: `none in the history; ${well}` }
  const answer = answerText(last)
  const many =
    failures.length === 1 ? "the last failed attempt" : `${failures.length} failed attempts`
  const says = `${many}: ${countsText(failures)}; the latest at ${moment(last.at, now)}${answer === "" ? "" : `: ${answer}`}`
  if (deliveredAt !== undefined && deliveredAt > last.at)
    return { name: "failures", result: "ok", says: `over: ${well}. Before that, ${says}` }
  const advice = adviceFor(last, findings, way)
  return {
    name: "failures",
    result: "problem",
    says: deliveredAt === undefined ? says : `${says}; ${well}`,
    ...(advice === undefined ? {} : { advice })
  }
}

/**
 * Says whether 429s are of our own making: how fast requests went before one, beside what the
 * receiver asked for.
 */
const rateCheck = ({ attempts, endpoint, rate }: Findings, now: number): ReadonlyArray<Check> => {
  const limited = attempts.failures.findLast(({ status }) => status === 429)
  if (limited === undefined || rate === undefined) return []
  const { inMinute, inSecond } = rate
  const name = `${endpoint.tenant}/${endpoint.id}`
  const pause = parseRetryAfter(limited.response?.headers["retry-after"], limited.at)
  const asked = pause === undefined ? "it named no Retry-After" : `it asked for ${spanText(pause)}`
  const went = `${plural(inMinute, "request")} went there in the minute before its 429 of ${moment(limited.at, now)}, ${countText(inSecond)} of them in the last second; ${asked}`
  const half =
    inSecond > 1 ? `${Math.ceil(inSecond / 2)}/s` : `${Math.max(1, Math.floor(inMinute / 2))}/min`
  if (inMinute > slow.inMinute || inSecond > slow.inSecond)
    return [
      {
        name: "rate",
        result: "warning",
        says: `the 429s may be of our own making: ${went}`,
        advice: `Send no faster than the receiver takes, for instance half of it: set \`rate\` to ${half}, or \`adapt\` (\`petrel endpoint set ${name} --rate ${half}\` or \`--adapt on\`).`
      }
    ]
  return [
    {
      name: "rate",
      result: "warning",
      says: `the 429s are not of our own making: ${went}`,
      advice: "Ask the receiver's owner what its limit counts: other senders, or a quota of a day."
    }
  ]
}

/** Checks the latest attempts. */
export const failureChecks = (findings: Findings, way: Way, now: number): ReadonlyArray<Check> => [
  failuresCheck(findings, way, now),
  ...rateCheck(findings, now)
]
