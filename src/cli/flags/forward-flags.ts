import { Result } from "effect"
import { type ForwardHeadersPatch, forwardNameProblem } from "../../domain/forwarded-headers.ts"
import { shown } from "./json-text.ts"
import { repeated } from "./shared.ts"

/** The flag that removes a header from those that are forwarded. */
export const noForwardHeader = repeated(
  "no-forward-header",
  "NAME",
  "Forwards this header no more; may be repeated"
)

/**
 * Parses the names of headers to forward, and to forward no more. Fails with the problems of all.
 */
const readForwarded = (
  given: ReadonlyArray<string>,
  removed: ReadonlyArray<string>
): Result.Result<ForwardHeadersPatch, ReadonlyArray<string>> => {
  const [names, gone] = [given, removed].map(
    (list) => new Set(list.map((name) => name.trim().toLowerCase()))
  )
  const problemsOf = (flag: string, list: Iterable<string>) =>
    [...list].flatMap((name) => {
      const problem = forwardNameProblem(name)
      return problem === undefined ? [] : [`${flag} ${shown(name)} ${problem}`]
    })
  const problems = [
    ...problemsOf("--forward-header", names ?? []),
    ...problemsOf("--no-forward-header", gone ?? []),
    ...[...(names ?? [])].flatMap((name) =>
      gone?.has(name) === true
        ? [`--forward-header and --no-forward-header exclude each other: both name ${shown(name)}`]
        : []
    )
  ]
  if (problems.length > 0) return Result.fail(problems)
  return Result.succeed({
    ...Object.fromEntries([...(names ?? [])].map((name) => [name, true] as const)),
    ...Object.fromEntries([...(gone ?? [])].map((name) => [name, null] as const))
  })
}

/** Makes the flag that names headers of the publisher to forward. */
export const forwardFlag = (description: string) => ({
  flag: () => ({ forwardHeader: repeated("forward-header", "NAME", description) }),
  read: ({
    forwardHeader,
    noForwardHeader = []
  }: {
    readonly forwardHeader: ReadonlyArray<string>
    readonly noForwardHeader?: ReadonlyArray<string>
  }) => readForwarded(forwardHeader, noForwardHeader)
})
