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

/** What a server may have open towards its clients at the same time. */
export interface OpenConnections {
  readonly max: number
  /** Connections that have lost their place, and are closed some seconds later. */
  readonly maxHeld: number
}

/** With fewer connections, half of which are for clients who are known, a server would serve nobody. */
const minConnections = 16
/** Of the files of a server, those for connections that have their place. */
const placesShare = 3 / 4

/** Files of a console besides its connections: it has 49, and opens others to read its log. */
export const consoleFiles = 72
/** Files of a gateway besides its connections: it has 25, and connects when it reconciles. */
export const gatewayFiles = 40

/** Returns how many files a process must be able to open for so many connections. */
export const filesForConnections = (wanted: number, others: number): number =>
  others + Math.ceil(wanted / placesShare)

/**
 * Returns the connections that fit into the files that a process may open. Where a file is missing,
 * the system closes whichever connection comes next, also that of a client who is known.
 *
 * @param wanted connections that may have a place.
 * @param others files that the process needs besides.
 * @param files files and connections that the process may have open; undefined for no limit.
 */
export const connectionsWithin = (
  wanted: number,
  others: number,
  files = Number.POSITIVE_INFINITY
): OpenConnections => {
  const free = files - others
  const max = Math.min(wanted, Math.max(minConnections, Math.floor(free * placesShare)))
  return { max, maxHeld: Math.max(1, free - max) }
}

/** Files of a worker besides its connections to receivers, with some for name look-ups: it has 24. */
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
