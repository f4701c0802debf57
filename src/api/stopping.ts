import type { Deferred } from "effect"
import { Context } from "effect"

/** Completes when the server begins to stop, so that answers without an end do not hold it up. */
export class Stopping extends Context.Service<Stopping, Deferred.Deferred<void>>()(
  "petrel/api/Stopping"
) {}
