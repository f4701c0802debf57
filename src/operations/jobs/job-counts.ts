import { Context } from "effect"

/** How many jobs of the installation have not ended. */
export interface JobCounts {
  readonly waiting: number
  readonly running: number
}

/** Counts the jobs of the installation, where jobs are worked on. */
export class JobCounter extends Context.Service<JobCounter, () => JobCounts>()(
  "petrel/operations/JobCounter"
) {}
