import type { Fact } from "../../../domain/fact.ts"
import type { ErrorClass } from "../../../domain/outcome.ts"
import { parseRetryAfter } from "../../../policy/retry-after.ts"
import { plainText } from "../../../text/plain-text.ts"
import { countText, plural, spanText, zonedTime } from "../../../text/quantities.ts"
import { type Check, type Findings, somethingWaits } from "./findings.ts"

/** The command that gives an endpoint another URL. */
const newUrl = (name: string): string => ` (\`petrel endpoint set ${name} --url URL\`)`

/**
 * Returns what to do about attempts that got no usable answer.
 *
 * @param name `<tenant>/<endpoint>`, for the commands in the text.
 */
export const errorAdvice = (kind: ErrorClass, name: string): string => {
  switch (kind) {
    case "timeout":
      return `The receiver takes longer than its time-out. It should answer first and work afterwards; until then, give it longer (\`petrel endpoint set ${name} --timeout '1 minute'\`).`
    case "connect-timeout":
      return "Packets are dropped on the way: check the receiver's firewall, and that it lets in the workers' addresses."
    case "refused":
      return `Nothing listens there: start the receiver, or correct host and port${newUrl(name)}.`
    case "reset":
      return "The receiver, or a proxy in front of it, closes connections: check its log, its limits on bodies and connections, and its time-out for idle connections."
    case "unreachable":
      return "No route leads there: check the network of the workers, including IPv6."
    case "connection":
      return "The connection fails: check the network between the workers and the receiver."
    case "dns":
      return `Correct the host's name, or its DNS entry${newUrl(name)}.`
    case "certificate":
      return "Fix the receiver's certificate. If its authority is one of your own, give the authority's certificate to the workers (`petrel worker --receiver-ca`)."
    case "handshake":
      return `The receiver's TLS does not fit: check that the port is the one for https, and that the receiver accepts TLS 1.2 or newer.`
    case "address":
      return "The address or port is not allowed: if it is intended, allow the workers to send there (`petrel worker --allow-network` or `--allow-port`)."
    case "protocol":
      return "The server that answers there does not speak HTTP: check host and port."
    case "redirect":
      return `Set the endpoint's URL to the target of the redirect${newUrl(name)}; or, if the redirect is intended, name the other origin in \`redirectsTo\` (\`petrel endpoint set ${name} --redirects-to ORIGIN\`).`
    case "interrupted":
      return "The endpoint was disabled while a request was in flight, so the worker ended the request: nothing is wrong with the receiver."
  }
}

/**
 * Returns what to do about answers with a status that is no success.
 *
 * @param name `<tenant>/<endpoint>`, for the commands in the text.
 * @param goesOn whether the endpoint's deliveries are tried again now.
 */
export const statusAdvice = (status: number, name: string, goesOn: boolean): string => {
  switch (status) {
    case 400:
    case 422:
      return "The receiver does not accept the content: compare its answer with the body that it got. If it complains about the signature, check the secret, the header names and the receiver's clock."
    case 401:
    case 403:
      return `The receiver does not accept the signature or the credentials: compare its secret (\`petrel endpoint show ${name} --reveal\`), its header names with the endpoint's, and its clock with the time (a signature holds for some minutes), or make a new secret (\`petrel endpoint rotate ${name}\`).`
    case 404:
      return `The path is wrong, or the receiver's route is gone: correct one of them${newUrl(name)}.`
    case 405:
      return `The receiver takes no POST there: correct the path${newUrl(name)}.`
    case 408:
      return "The receiver gave up waiting for the request: look for a slow proxy on the way."
    case 410:
      return `The receiver says that it wants no more events: ask its owner, then remove it (\`petrel endpoint remove ${name}\`) or correct its URL.`
    case 413:
      return "The body is larger than the receiver takes: raise its limit, or publish less in one event."
    case 415:
      return "The receiver does not take the content type: publish with the content-type that it expects."
    case 429:
      return `The receiver limits requests: set \`rate\` to what it takes, or \`adapt\` (\`petrel endpoint set ${name} --rate\` or \`--adapt on\`).`
    case 502:
    case 503:
    case 504:
      return "A proxy answers for a receiver that is down, overloaded or too slow: check the server behind it; a lower `maxInFlight` reduces its load (`petrel endpoint set --max-in-flight`)."
    default:
      if (status >= 500)
        return `The receiver has an error of its own: its log says why, at the times above.${goesOn ? " Petrel continues to retry; nothing has to be done here." : ""}`
      if (status >= 300 && status < 400)
        return `It redirects, and redirects are not followed: set the endpoint's URL to the target${newUrl(name)}, or set \`redirects\` to follow them, and \`redirectsTo\` if they lead to another origin (\`petrel endpoint set ${name} --redirects 3\`).`
      return "The receiver refuses the requests: its answer and its log say why."
  }
}

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

/** Whether something waits for the endpoint, and is tried again by itself. */
const goesOnAt = (findings: Findings): boolean => {
  const { disabled, paused, suspended } = findings.endpoint
  const isHeld = disabled !== undefined || suspended !== undefined || paused !== undefined
  return !isHeld && somethingWaits(findings)
}

/** Returns what to do about a failure; undefined where another check says it. */
const adviceFor = (
  { error, response, status = 0 }: Fact,
  findings: Findings,
  way: Way
): string | undefined => {
  const { endpoint, rate } = findings
  const name = `${endpoint.tenant}/${endpoint.id}`
  const goesOn = goesOnAt(findings)
  if (error !== undefined) {
    if (!onTheWay.has(error.class) || way === "unknown") return errorAdvice(error.class, name)
    return way === "blocked" || !goesOn
      ? undefined
      : `The connection works now: do not wait for the next attempt, try now (\`petrel endpoint retry-now ${name}\`).`
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
      : `last delivered at ${zonedTime(deliveredAt, now)}`
  if (last === undefined)
    return { name: "failures", result: "ok", says: `none in the history; ${well}` }
  const answer = answerText(last)
  const many =
    failures.length === 1 ? "the last failed attempt" : `${failures.length} failed attempts`
  const says = `${many}: ${countsText(failures)}; the latest at ${zonedTime(last.at, now)}${answer === "" ? "" : `: ${answer}`}`
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
 * Says whether 429s are of our own making: how fast requests went before one, compared with what the
 * receiver asked for.
 */
const rateCheck = ({ attempts, endpoint, rate }: Findings, now: number): ReadonlyArray<Check> => {
  const limited = attempts.failures.findLast(({ status }) => status === 429)
  if (limited === undefined || rate === undefined) return []
  const { inMinute, inSecond } = rate
  const name = `${endpoint.tenant}/${endpoint.id}`
  const pause = parseRetryAfter(limited.response?.headers["retry-after"], limited.at)
  const asked =
    pause === undefined ? "it sent no Retry-After" : `its Retry-After was ${spanText(pause)}`
  const went = `${plural(inMinute, "request")} went there in the minute before its 429 of ${zonedTime(limited.at, now)}, ${countText(inSecond)} of them in the last second; ${asked}`
  const half =
    inSecond > 1 ? `${Math.ceil(inSecond / 2)}/s` : `${Math.max(1, Math.floor(inMinute / 2))}/min`
  if (inMinute > slow.inMinute || inSecond > slow.inSecond)
    return [
      {
        name: "rate",
        result: "warning",
        says: `Petrel may cause the 429s itself: ${went}`,
        advice: `Send more slowly, for example half as fast: set \`rate\` to ${half}, or \`adapt\` (\`petrel endpoint set ${name} --rate ${half}\` or \`--adapt on\`).`
      }
    ]
  return [
    {
      name: "rate",
      result: "warning",
      says: `Petrel does not cause the 429s: ${went}`,
      advice:
        "Ask the receiver's owner what else its limit counts: other senders, or a daily quota."
    }
  ]
}

/** Checks the latest attempts. */
export const failureChecks = (findings: Findings, way: Way, now: number): ReadonlyArray<Check> => [
  failuresCheck(findings, way, now),
  ...rateCheck(findings, now)
]
