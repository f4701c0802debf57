/** What a worker may have open towards receivers at the same time. */
export interface OpenLoad {
  /** Requests in flight. */
  readonly maxInFlight: number
  /** Connections, those of requests in flight included. */
  readonly maxConnections: number
}

/**
 * Connections to receivers that may be open, as a multiple of the requests that may be in flight.
 * Those of requests in flight count, too; the others are kept alive for the next request.
 */
const openPerRequest = 4

/** Files of a worker besides its connections to receivers, with room for name look-ups: it has 24. */
const otherFiles = 48

/** With fewer requests in flight, one endpoint would hold up the others. */
export const minInFlight = 16

/** Returns how many files a process must be able to open for so many requests in flight. */
export const filesFor = (maxInFlight: number): number => otherFiles + 2 * maxInFlight

/**
 * Returns what fits into the files that a process may open. A request for which there is no file
 * would fail as if its receiver were down: it would use up an attempt, and open the circuit.
 *
 * @param wanted requests that may be in flight.
 * @param files files and connections that the process may have open; undefined for no limit.
 */
export const loadWithin = (wanted: number, files = Number.POSITIVE_INFINITY): OpenLoad => {
  const free = files - otherFiles
  const maxInFlight = Math.min(wanted, Math.max(minInFlight, Math.floor(free / 2)))
  const idle = Math.max(0, free - maxInFlight)
  return { maxInFlight, maxConnections: Math.min(openPerRequest * maxInFlight, idle) }
}
