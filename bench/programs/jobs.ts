/**
 * Does the jobs that come as messages until the parent leaves, and answers each with its result. A
 * job that fails ends the program. Says first, with an empty message, that it is ready.
 */
export const doJobs = <Job, Done extends object>(work: (job: Job) => Promise<Done>): void => {
  process.on("message", (job: Job) => {
    work(job).then(
      (done) => process.send?.(done),
      (error: unknown) => {
        console.error(error)
        process.exit(1)
      }
    )
  })
  process.once("disconnect", () => process.exit(0))
  process.send?.({})
}
