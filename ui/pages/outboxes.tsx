import { useAsked } from "../data.ts"
import { Rows } from "../list.tsx"
import { Answered, Command, count, State } from "../parts.tsx"
import { petrel } from "../session.ts"
import { Ago, lasting } from "../times.tsx"

/** Rows are counted up to this number. */
const mostCounted = 100_000

/** The outboxes of databases, as their relays last reported them. */
export const Outboxes = () => {
  const asked = useAsked("outboxes", (options) => petrel.system.outboxes({}, options), 5_000)
  return (
    <>
      <h1>Outboxes</h1>
      <Answered asked={asked}>
        {({ outboxes }) => (
          <>
            {outboxes.flatMap(({ name, problem, problemMs = 0 }) =>
              problem === undefined
                ? []
                : [
                    <div key={name} class="note">
                      <b aria-hidden="true">■</b>
                      <div>
                        {name}: {problem}, for {lasting(problemMs)}.
                      </div>
                    </div>
                  ]
            )}
            <Rows
              items={outboxes}
              keyOf={({ name }) => name}
              empty={
                <>
                  <p>
                    No relay has reported an outbox. A relay publishes what a table of PostgreSQL
                    holds, if and only if the transaction that stored it has committed.
                  </p>
                  <Command text="petrel outbox migrate" />
                  <Command text="petrel outbox" />
                </>
              }
              head={
                <>
                  <th>Outbox</th>
                  <th>Relay</th>
                  <th class="n">Rows that wait</th>
                  <th class="n">The oldest for</th>
                  <th class="n">Set aside</th>
                  <th class="hide-s">Process</th>
                  <th class="n">Counted</th>
                </>
              }
              row={(one) => (
                <>
                  <td>{one.name}</td>
                  <td>
                    <State
                      is={one.isSilent || one.problem !== undefined ? "problem" : "ok"}
                      says={
                        one.isSilent
                          ? "silent"
                          : one.problem === undefined
                            ? "at work"
                            : "kept from it"
                      }
                    />
                  </td>
                  <td class="n">
                    {count(one.pending)}
                    {one.pending >= mostCounted && " or more"}
                  </td>
                  <td class="n">{one.pending === 0 ? "–" : lasting(one.oldestMs)}</td>
                  <td class="n">
                    {one.setAside === 0 ? "0" : <State is="warn" says={count(one.setAside)} />}
                  </td>
                  <td class="hide-s mono">{one.relay}</td>
                  <td class="n">
                    <Ago at={one.countedAt ?? one.at} />
                  </td>
                </>
              )}
            />
            {outboxes.some(({ setAside }) => setAside > 0) && (
              <>
                <p class="lead">
                  Rows that can never be published as they are were set aside. They are in the
                  database: see them there, and release or discard them.
                </p>
                <Command text="petrel outbox list" />
              </>
            )}
            {outboxes.some(({ isSilent }) => isSilent) && (
              <p class="lead">
                A relay that is silent does not run, or has no broker. An outbox that is no more is
                forgotten with <code>petrel outbox forget NAME</code>.
              </p>
            )}
          </>
        )}
      </Answered>
      <Command text="petrel outbox status" />
    </>
  )
}
