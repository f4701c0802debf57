import { useAsked } from "../data.ts"
import { Rows } from "../list.tsx"
import { Answered, Command, Conditions, count, State } from "../parts.tsx"
import { address } from "../router.ts"
import { petrel } from "../session.ts"
import { Ago } from "../times.tsx"

const sizes = ["B", "KiB", "MiB", "GiB", "TiB"]

const bytesText = (bytes: number | null): string => {
  if (bytes === null) return "–"
  const power = Math.min(sizes.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  return `${(bytes / 1024 ** power).toFixed(power === 0 ? 0 : 1)} ${sizes[power]}`
}

type Status = Awaited<ReturnType<typeof petrel.system.status>>

/** How many endpoints there are, and how many of them get nothing now. */
export const EndpointCounts = ({ of }: { readonly of: Status["endpoints"] }) => {
  // With 100,000 of them a console's first count takes longer than it lets the status wait.
  if (of === null) return <>endpoints are still being counted</>
  const held = [
    ["open", of.open, of.open === 1 ? "with an open circuit" : "with open circuits"],
    ["paused", of.paused, "paused"],
    ["suspended", of.suspended, "suspended"],
    ["disabled", of.disabled, "disabled"]
  ] as const
  return (
    <>
      <a href={address(["endpoints"])}>
        {count(of.total)} {of.total === 1 ? "endpoint" : "endpoints"}
      </a>
      {held.map(
        ([state, n, how]) =>
          n > 0 && (
            <>
              {", "}
              <a href={address(["endpoints"], { state })}>
                {count(n)} {how}
              </a>
            </>
          )
      )}
    </>
  )
}

/** Workers, partitions, the broker and its storage. */
export const System = () => {
  const asked = useAsked("status", (options) => petrel.system.status({}, options), 4_000)
  return (
    <>
      <h1>System</h1>
      <Answered asked={asked}>
        {(status) => (
          <>
            <Conditions are={status.problems} />
            <Conditions are={status.notices} warn />
            <section class="row">
              <div class="card">
                <h2>Broker</h2>
                <dl class="facts">
                  <dt>version</dt>
                  <dd>nats-server {status.broker.version}</dd>
                  <dt>cluster</dt>
                  <dd>
                    {status.broker.cluster ?? "a single server"}, {status.broker.replicas}{" "}
                    {status.broker.replicas === 1 ? "copy" : "copies"} of each stream
                  </dd>
                  <dt>endpoints</dt>
                  <dd>
                    <EndpointCounts of={status.endpoints} />
                  </dd>
                  <dt>events</dt>
                  <dd>
                    <a href={address(["events"])}>{count(status.events.stored)} stored</a>
                  </dd>
                  <dt>to be routed</dt>
                  <dd>{count(status.events.waitingForRouter)}</dd>
                </dl>
              </div>
              <div class="card">
                <h2>Storage</h2>
                <dl class="facts">
                  {(["events", "history", "deadLetters", "queues", "backlogs"] as const).map(
                    (name) => (
                      <>
                        <dt>
                          {name === "deadLetters" ? (
                            <a href={address(["dead-letters"])}>dead letters</a>
                          ) : (
                            name
                          )}
                        </dt>
                        <dd>
                          {bytesText(status.room[name].bytes)} of{" "}
                          {bytesText(status.room[name].limitBytes)}
                        </dd>
                      </>
                    )
                  )}
                </dl>
              </div>
            </section>
            <h2>Workers</h2>
            <Rows
              items={status.workers ?? []}
              empty="No worker runs: nothing is delivered until one does."
              head={
                <>
                  <th>Worker</th>
                  <th>State</th>
                  <th class="hide-s">Partitions</th>
                  <th class="n">Started</th>
                </>
              }
              row={({ alive, partitions, startedAt, worker }) => (
                <>
                  <td class="mono">{worker}</td>
                  <td>
                    <State is={alive ? "ok" : "problem"} says={alive ? "alive" : "missed"} />
                  </td>
                  <td class="hide-s">{partitions.join(", ")}</td>
                  <td class="n">
                    <Ago at={startedAt} />
                  </td>
                </>
              )}
            />
            <h2>Partitions</h2>
            <Rows
              items={status.partitions}
              empty="There are none."
              head={
                <>
                  <th>Partition</th>
                  <th>Owner</th>
                  <th class="n">In flight</th>
                  <th class="n">Retries</th>
                  <th class="n">Backlog</th>
                </>
              }
              row={({ backlog, inFlight, owner, partition, retries }) => (
                <>
                  <td>{partition}</td>
                  <td class="mono">{owner ?? <State is="problem" says="nobody" />}</td>
                  <td class="n">{count(inFlight)}</td>
                  <td class="n">{count(retries)}</td>
                  <td class="n">{count(backlog)}</td>
                </>
              )}
            />
          </>
        )}
      </Answered>
      <Command text="petrel status" />
    </>
  )
}
