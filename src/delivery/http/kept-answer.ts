import type { AttemptResult } from "../../domain/outcome.ts"
import { redacted } from "./redaction.ts"

/**
 * How much of an answer is kept, from nothing to all that is read: each level includes those before
 * it.
 */
export const answerLevels = ["none", "status", "headers", "body"] as const
export type AnswerLevel = (typeof answerLevels)[number]

/**
 * Returns what may be stored of an attempt's result: no more of the answer than `level` allows, and
 * none of the secrets that it repeats.
 *
 * @param secrets called only where there is a text that could contain them.
 */
export const keptResult = (
  result: AttemptResult,
  level: AnswerLevel,
  secrets: () => ReadonlyArray<string>
): AttemptResult => {
  const { error, response, status } = result
  if (response === undefined && error === undefined) return result
  const texts = level === "body" || level === "headers"
  const hidden = secrets()
  return {
    ...result,
    status: level === "none" ? undefined : status,
    error:
      error === undefined
        ? undefined
        : {
            class: error.class,
            message:
              // The message names the redirect's target, which is part of the answer.
              error.class === "redirect" && !texts
                ? "a redirect that is not followed"
                : redacted(error.message, hidden)
          },
    // They name targets, which are part of the answers.
    redirects: texts ? result.redirects : undefined,
    response:
      response === undefined || !texts
        ? undefined
        : {
            headers: redactedAll(response.headers, hidden),
            body: level === "body" ? redacted(response.body, hidden) : "",
            bytes: response.bytes
          }
  }
}

const redactedAll = (
  headers: Readonly<Record<string, string>>,
  secrets: ReadonlyArray<string>
): Record<string, string> => {
  const kept: Record<string, string> = {}
  for (const name in headers) kept[name] = redacted(headers[name] ?? "", secrets)
  return kept
}
