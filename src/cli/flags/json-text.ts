import { Result } from "effect"

/** Quotes a text, truncated if it is long. */
export const shown = (text: string): string =>
  JSON.stringify(text.length > 80 ? `${text.slice(0, 77)}…` : text)

/** Parses JSON. Fails with a sentence that says what is expected. */
export const readJson = (
  flag: string,
  text: string,
  expected: string
): Result.Result<unknown, ReadonlyArray<string>> =>
  Result.try({
    try: (): unknown => JSON.parse(text),
    catch: (error) => [
      `${flag} ${shown(text)} must be ${expected}: ${error instanceof Error ? error.message : String(error)}`
    ]
  })
