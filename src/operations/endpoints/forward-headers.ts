import { maxForwardHeaders } from "../../domain/forwarded-headers.ts"
import type { Problem } from "../../domain/problem.ts"
import type { ForwardHeadersPatch } from "./endpoint-settings.ts"

/**
 * Returns the headers to forward after a change, in lower case; the problems with it, if any.
 *
 * @param before in lower case.
 */
export const forwardHeadersAfter = (
  before: ReadonlyArray<string>,
  patch: ForwardHeadersPatch
): { readonly names: ReadonlyArray<string>; readonly problems: ReadonlyArray<Problem> } => {
  const names = new Set(before)
  const problems: Array<Problem> = []
  for (const [given, change] of Object.entries(patch)) {
    const name = given.toLowerCase()
    if (change === true) names.add(name)
    else if (!names.delete(name))
      problems.push({
        field: `forwardHeaders.${given}`,
        message: "is not forwarded, so that it cannot be removed"
      })
  }
  if (names.size > maxForwardHeaders)
    problems.push({
      field: "forwardHeaders",
      message: `would be ${names.size}, and at most ${maxForwardHeaders} headers are forwarded: each is stored with each delivery`
    })
  return { names: [...names], problems }
}
