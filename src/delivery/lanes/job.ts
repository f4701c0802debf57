import type { Straight } from "../straight.ts"
import { leaveUntried } from "../straight.ts"
import type { Held } from "./held.ts"

/** A delivery on its way through its endpoint's lane: from the queue, from the backlog, or from its event. */
export type Job =
  | { readonly key: string; readonly held: Held; readonly isFromBacklog: boolean }
  | { readonly key: string; readonly straight: Straight }

export const deliveryOf = (job: Job) => ("straight" in job ? job.straight : job.held)

/** Where a delivery goes that was not begun; the key is that of its endpoint. */
export interface Origins {
  readonly queue: (key: string, held: Held) => void
  readonly backlog: (key: string, held: Held) => void
}

/** Gives a job back to where it came from. */
export const giveBackTo =
  ({ backlog, queue }: Origins) =>
  (job: Job): void => {
    if ("straight" in job) leaveUntried(job.straight)
    else if (job.isFromBacklog) backlog(job.key, job.held)
    else queue(job.key, job.held)
  }
