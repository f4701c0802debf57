/** A reading of a stream through filters. */
export interface FilteredReading {
  readonly filters: ReadonlyArray<string>
  /** Messages that match. */
  readonly matches: number
  /** Messages of the range, those that do not match included. */
  readonly total: number
  /** Subjects in the stream. */
  readonly subjects: number
}

/** What each message of a reading takes, µs. */
const perMessage = 5
/** What each match takes besides for every subject of a block, by the number of filters, µs. */
const perSubject = (filters: number): number => (filters === 1 ? 0.005 : 0.05 * filters)
/** Subjects that one block of a stream has at most, some 8 MiB of facts. */
const subjectsOfBlock = 10_000

const isLiteral = (filter: string): boolean => !/(?:^|\.)[*>](?:\.|$)/.test(filter)

/** So few matches are read soon in any case. */
export const isFew = (filters: ReadonlyArray<string>, matches: number): boolean =>
  matches <= (filters.length === 1 ? 2_000 : 64)

/**
 * Returns true where it is faster to read all messages and drop those that do not match: for each
 * match the broker compares all subjects of a block with the filters. Measured with nats-server
 * 2.15.1, 120,000 messages without bodies under 10,000 subjects: 230,000 a second without a filter,
 * 21,000 with a wildcard, 1,700 with two filters and 620 with four.
 */
export const isFasterUnfiltered = (reading: FilteredReading): boolean => {
  const { filters, matches, subjects, total } = reading
  const [first = ">", ...others] = filters
  if (others.length === 0 && (first === ">" || isLiteral(first))) return false
  const perMatch = perSubject(filters.length) * Math.min(subjects, subjectsOfBlock)
  return total * perMessage < matches * (perMessage + perMatch)
}

/** Returns a function that tells whether a subject matches one of the filters. */
export const subjectMatcher = (filters: ReadonlyArray<string>): ((subject: string) => boolean) => {
  const patterns = filters.map((filter) =>
    filter
      .split(".")
      .map((token) =>
        token === ">" ? ".+" : token === "*" ? "[^.]+" : token.replace(/[^\w-]/g, "\\$&")
      )
      .join("\\.")
  )
  // A pattern that matches nothing, for no filter.
  const pattern = new RegExp(`^(?:${patterns.join("|") || "(?!)"})$`, "s")
  return (subject) => pattern.test(subject)
}
