import { useEffect, useState } from "preact/hooks"
import { type Failure, isProblem } from "../../src/client/client.ts"
import { problemText } from "../data.ts"
import { shownEndpoint, shownTenant } from "../frame.tsx"
import { Rows } from "../list.tsx"
import { Command, deliveryPage, EndpointLink, State } from "../parts.tsx"
import { endSession, petrel, session } from "../session.ts"
import { clockText, timeText } from "../times.tsx"

/** Lines that are kept. */
const most = 1_000
/** Lines that come within this time are shown together, ms: to render 1,000 rows for each takes minutes. */
const togetherMs = 100

/** What came. */
interface Said {
  readonly failure?: Failure
  readonly says?: string
}

interface Line extends Said {
  /** Its number on this page. */
  readonly at: number
}

const text = (value: unknown): string => (typeof value === "string" ? value : "")

const timeOf = ({ at }: Failure): string => text(at)

/** Failures of a tenant or of one of its endpoints. */
const LiveOf = ({
  endpoint,
  tenant
}: {
  readonly endpoint: string | undefined
  readonly tenant: string
}) => {
  const [lines, setLines] = useState<ReadonlyArray<Line>>([])
  const [isPaused, pause] = useState(false)
  const [state, setState] = useState("connecting")
  useEffect(() => {
    if (isPaused) return
    const leaving = new AbortController()
    let isGone = false
    let lastEventId: string | undefined
    let came: Array<Said> = []
    const show = (): void => {
      const news = came
      came = []
      setLines((before) => {
        const last = before[0]?.at ?? 0
        const lines = news.map((said, n) => ({ ...said, at: last + n + 1 }))
        return [...lines.reverse(), ...before].slice(0, most)
      })
    }
    const take = (said: Said): void => {
      if (came.length === 0) setTimeout(show, togetherMs)
      came.push(said)
      // The timers of a page that nobody sees come late.
      if (came.length > 2 * most) came.splice(0, most)
    }
    const follow = async (): Promise<void> => {
      const live = petrel.live(
        { tenant, ...(endpoint === undefined ? {} : { endpoint }) },
        {
          signal: leaving.signal,
          // What happened meanwhile comes with the next connection.
          onConnected: (is) => setState(is ? "following" : "connecting again"),
          ...(lastEventId === undefined ? {} : { lastEventId })
        }
      )
      for await (const message of live) {
        lastEventId = live.lastEventId
        take(
          message.tells === "failure"
            ? { failure: message.failure }
            : { says: `${message.dropped ?? "Some"} left out: ${message.why}` }
        )
      }
    }
    const keepOn = async (): Promise<void> => {
      while (!isGone) {
        await follow().catch((error: unknown) => {
          if (isGone) return
          // A session that has ended does not come back by asking.
          if (isProblem(error, "unauthorized")) endSession()
          else setState(problemText(error))
        })
        if (session.value === null) return
        await new Promise((resolve) => setTimeout(resolve, 2_000))
      }
    }
    void keepOn()
    return () => {
      isGone = true
      leaving.abort()
    }
  }, [tenant, endpoint, isPaused])
  return (
    <>
      <div class="title">
        <h1>Live failures</h1>
        <span class="chip" role="status">
          {isPaused ? "paused" : state}
        </span>
        <div class="acts">
          <button type="button" onClick={() => pause(!isPaused)}>
            {isPaused ? "Go on" : "Pause"}
          </button>
          <button type="button" onClick={() => setLines([])}>
            Clear
          </button>
        </div>
      </div>
      <Rows
        items={lines}
        keyOf={({ at }) => at}
        empty="What fails from now on is shown here."
        head={
          <>
            <th>Time</th>
            <th>What</th>
            <th>Delivery</th>
            <th>Endpoint</th>
          </>
        }
        row={({ failure, says }) =>
          failure === undefined ? (
            <td colSpan={4}>{says}</td>
          ) : (
            <>
              <td title={timeText(timeOf(failure))}>{clockText(timeOf(failure))}</td>
              <td>
                <State is="failed" says={failure.kind} />
              </td>
              <td class="mono">
                <a
                  href={deliveryPage(
                    failure.tenant ?? "",
                    `${text(failure.event)}.${failure.endpoint}`
                  )}
                >
                  {text(failure.event)}
                </a>
              </td>
              <td>
                {failure.endpoint === "_" ? (
                  // An alert about a tenant, or about the installation.
                  failure.tenant === "_" ? (
                    "the installation"
                  ) : (
                    failure.tenant
                  )
                ) : (
                  <EndpointLink tenant={failure.tenant ?? ""} id={failure.endpoint ?? ""} />
                )}
              </td>
            </>
          )
        }
      />
      <Command text="petrel history --follow --failures" />
    </>
  )
}

/** Failures as they happen. */
export const Live = () => {
  const tenant = shownTenant()
  const endpoint = shownEndpoint()
  // What came of another tenant is not of this one.
  return <LiveOf key={JSON.stringify([tenant, endpoint])} tenant={tenant} endpoint={endpoint} />
}
