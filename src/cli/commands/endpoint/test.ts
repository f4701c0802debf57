import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { endpointLabel } from "../../../domain/endpoint.ts"
import { jsonOf } from "../../../domain/timestamp.ts"
import { operatorNamed } from "../../../operations/caller.ts"
import {
  errorAdvice,
  statusAdvice
} from "../../../operations/endpoints/diagnosis/failure-checks.ts"
import { TestReport, testEndpoint } from "../../../operations/endpoints/test-endpoint.ts"
import { plainText } from "../../../text/plain-text.ts"
import { spanText } from "../../../text/quantities.ts"
import { endpointArgument, maybe, thisUser } from "../../flags/shared.ts"
import { bodyLines, redirectLines, responseLines } from "../../format/answer.ts"
import { screenWidth, sideBySide } from "../../format/screen.ts"
import { Refused } from "../../refused.ts"
import { connected, petrel } from "../../root-command.ts"
import { print } from "../../terminal/stdout.ts"

const encode = jsonOf(TestReport)

const textFlag = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(description), maybe)

const requestLines = ({ body, headers, url }: TestReport): ReadonlyArray<string> => [
  "REQUEST",
  `POST ${plainText(url)}`,
  ...headers.flatMap((name, n) =>
    n % 2 === 0 ? [`${name}: ${plainText(headers[n + 1] ?? "")}`] : []
  ),
  ...bodyLines(body)
]

const timesText = ({ connectMs, durationMs, firstByteMs }: TestReport): string =>
  [
    `after ${spanText(durationMs)}`,
    ...(connectMs === undefined ? [] : [`connected in ${spanText(connectMs)}`]),
    ...(firstByteMs === undefined ? [] : [`first byte after ${spanText(firstByteMs)}`])
  ].join(", ")

const answerLines = (report: TestReport): ReadonlyArray<string> => {
  const { error, redirects, response, status } = report
  return [
    "ANSWER",
    ...redirectLines(redirects),
    ...(status === undefined ? [] : [`status ${status}`]),
    ...(error === undefined ? [] : [`${error.class}: ${plainText(error.message)}`]),
    timesText(report),
    ...(response === undefined ? [] : responseLines(response))
  ]
}

const verdictTexts = {
  delivered: "The receiver took it.",
  retry: "A delivery with this outcome would be tried again.",
  fail: "A delivery with this outcome would not be tried again."
} as const

const adviceOf = ({ endpoint, error, status = 0, tenant }: TestReport): string => {
  const name = endpointLabel({ tenant, id: endpoint })
  return error === undefined ? statusAdvice(status, name, false) : errorAdvice(error.class, name)
}

/** Sends a test event to an endpoint. */
export const test = Command.make(
  "test",
  {
    name: endpointArgument,
    type: textFlag("type", "TYPE", "Its event type (default: petrel.test)"),
    body: textFlag("body", "BODY", "Its body (default: JSON that says that it is a test)"),
    contentType: textFlag("content-type", "TYPE", "What it is (default: application/json)")
  },
  Effect.fnUntraced(function* ({ name, ...flags }) {
    const { json } = yield* petrel
    const report = yield* testEndpoint(name, flags, operatorNamed(thisUser())).pipe(
      Effect.provide(connected)
    )
    if (json) yield* print(JSON.stringify(encode(report)))
    else {
      const columns = sideBySide(requestLines(report), answerLines(report), screenWidth())
      yield* print([...columns, "", verdictTexts[report.verdict]].join("\n"))
    }
    if (report.verdict !== "delivered")
      return yield* new Refused({ message: `the test failed. ${adviceOf(report)}` })
  })
).pipe(
  Command.withDescription(
    "Send one signed event to an endpoint at once, from the worker that delivers to it, and show request and answer. It does not count for the endpoint's health or limits, and is not in the history. Receivers see the header petrel-test: true"
  ),
  Command.withShortDescription("Send an endpoint one test event, and show its answer"),
  Command.withExamples([
    { command: "petrel endpoint test acme/billing" },
    { command: `petrel endpoint test acme/billing --type invoice.paid --body '{"total":42}'` }
  ])
)
