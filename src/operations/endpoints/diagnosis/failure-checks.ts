import type { Fact } from "../../../domain/fact.ts"
import { plainText } from "../../../history/line.ts"
import { spanText } from "../../../history/span.ts"
import { parseRetryAfter } from "../../../policy/retry-after.ts"
import { plural } from "../../text/number-format.ts"
import { moment } from "../../text/time.ts"
import type { Check } from "./check.ts"
import { errorAdvice, statusAdvice } from "./failure-advice.ts"
import type { Findings } from "./findings.ts"

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

const answerText = ({ error, response }: Fact): string => {
  const text = plainText(error?.message ?? response?.body ?? "").trim()
  if (text === "") return ""
  return text.length <= maxAnswerLength ? text : `${text.slice(0, maxAnswerLength - 1)}…`
}

const adviceFor = (failure: Fact, name: string): string => {
  const { error, response, status = 0 } = failure
  const advice = error === undefined ? statusAdvice(status, name) : errorAdvice(error.class, name)
  const id = response?.headers["x-request-id"]
  return id === undefined
    ? advice
    : `${advice} The receiver's id of that request: ${plainText(id)}.`
}

const failuresCheck = ({ attempts, endpoint }: Findings, now: number): Check => {
  const { deliveredAt, failures, since } = attempts
  const last = failures.at(-1)
  const well =
    deliveredAt === undefined ? "nothing was delivered" : `delivered at ${moment(deliveredAt, now)}`
  if (last === undefined)
    return {
      name: "failures",
      result: "ok",
      says: `none since ${moment(since, now)}; ${deliveredAt === undefined ? "nothing was delivered either" : `last ${well}`}`
    }
  const isOver = deliveredAt !== undefined && deliveredAt > last.at
  const answer = answerText(last)
  const says = `the last ${plural(failures.length, "failed attempt")}: ${countsText(failures)}; the latest at ${moment(last.at, now)}${answer === "" ? "" : `: ${answer}`}`
  if (isOver)
    return { name: "failures", result: "ok", says: `over: last ${well}. Before that, ${says}` }
  return {
    name: "failures",
    result: "problem",
    says: deliveredAt === undefined ? says : `${says}; last ${well}`,
    advice: adviceFor(last, `${endpoint.tenant}/${endpoint.id}`)
  }
}

/**
 * Says whether 429s are of our own making: how fast requests went before one, beside what the
 * receiver asked for.
 */
const rateCheck = ({ attempts, endpoint, rate }: Findings, now: number): ReadonlyArray<Check> => {
  const limited = attempts.failures.findLast(({ status }) => status === 429)
  if (limited === undefined || rate === undefined) return []
  const { requests, withinMs } = rate
  const name = `${endpoint.tenant}/${endpoint.id}`
  const pause = parseRetryAfter(limited.response?.headers["retry-after"], limited.at)
  const asked = pause === undefined ? "it named no Retry-After" : `it asked for ${spanText(pause)}`
  const went = `${plural(requests, "request")} went there in the ${spanText(withinMs)} before its 429 of ${moment(limited.at, now)}; ${asked}`
  const perMinute = Math.max(1, Math.floor((requests * 60_000) / withinMs / 2))
  if (requests > 1)
    return [
      {
        name: "rate",
        result: "warning",
        says: `the 429s may be of our own making: ${went}`,
        advice: `Send no faster than the receiver takes, for instance half of it: petrel endpoint set ${name} --rate ${perMinute}/min, or --adapt on.`
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
export const failureChecks = (findings: Findings, now: number): ReadonlyArray<Check> => [
  failuresCheck(findings, now),
  ...rateCheck(findings, now)
]
