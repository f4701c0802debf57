import { Context } from "effect"
import { Connections } from "../connections/connections.ts"
import { gauge, type NumberFamily } from "../metrics/family.ts"
import type { RefusalCells } from "../metrics/refused-requests.ts"
import { rawProblem, unavailableProblem } from "./problems.ts"

/** Connections to the API at the same time. Half of them may be of clients that have shown no valid token. */
export const maxConnections = 1_024

/** Why a connection is closed, for a client whose request is on its way. */
const crowded = rawProblem(
  unavailableProblem(
    "there are too many connections: connect again, and close those that are not used",
    1
  )
)

/** Makes what bounds the connections of the API's server. */
export const makeApiConnections = (
  refused: RefusalCells,
  isPlain: boolean,
  max: number = maxConnections,
  maxHeld?: number
): Connections =>
  new Connections({ max, maxHeld, isPlain, crowded, refused: () => refused.note("connections") })

/** How many connections to the API there are. */
export const connectionFamilies = ({
  counts: { held, known, strangers }
}: Connections): ReadonlyArray<NumberFamily> => [
  {
    ...gauge("petrel.api.connections", "Connections to the API, by whether a token has come.", 0),
    samples: [
      { labels: { token: "none" }, value: strangers },
      { labels: { token: "valid" }, value: known }
    ]
  },
  gauge(
    "petrel.api.held.connections",
    "Connections that have lost their place, and are closed some seconds later.",
    held
  )
]

/** The connections of the server that a request came to. */
export class LiveConnections extends Context.Service<LiveConnections, Connections>()(
  "petrel/api/LiveConnections"
) {}
