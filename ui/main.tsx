import { type ComponentChildren, Fragment, render, type VNode } from "preact"
import { useEffect, useErrorBoundary } from "preact/hooks"
import { Frame, firstPage, isFor, named, shownPage, titleOf } from "./frame.tsx"
import { isBulkKind, kinds } from "./jobs.ts"
import { Alerts } from "./pages/alerts.tsx"
import { Attempts } from "./pages/attempts.tsx"
import { Audit } from "./pages/audit.tsx"
import { DeadLetters } from "./pages/dead-letters.tsx"
import { Deliveries } from "./pages/deliveries.tsx"
import { Delivery } from "./pages/delivery.tsx"
import { Endpoint } from "./pages/endpoint.tsx"
import { EndpointHistory } from "./pages/endpoint-history.tsx"
import { EditEndpoint, NewEndpoint } from "./pages/endpoint-settings.tsx"
import { Endpoints } from "./pages/endpoints.tsx"
import { Event } from "./pages/event.tsx"
import { Events } from "./pages/events.tsx"
import { JobPage, Jobs } from "./pages/jobs.tsx"
import { Live } from "./pages/live.tsx"
import { Login } from "./pages/login.tsx"
import { Outboxes } from "./pages/outboxes.tsx"
import { Overview } from "./pages/overview.tsx"
import { Policies } from "./pages/policies.tsx"
import { Quarantine, QuarantineItem } from "./pages/quarantine.tsx"
import { NewSource } from "./pages/source-form.tsx"
import { SourceShown, Sources } from "./pages/sources.tsx"
import { isStart, StartJob } from "./pages/start-job.tsx"
import { System } from "./pages/system.tsx"
import { Settings } from "./pages/tenant-settings.tsx"
import { Tokens } from "./pages/tokens.tsx"
import { showTheme } from "./parts.tsx"
import { address, go, path, query } from "./router.ts"
import { may, readSession, session, unknownBecause } from "./session.ts"

/** Pages of one thing, which is named by its tenant and its id. */
const things: Readonly<
  Record<string, (thing: { readonly tenant: string; readonly id: string }) => VNode>
> = {
  deliveries: (thing) => <Delivery {...thing} />,
  endpoints: (thing) => <Endpoint {...thing} />,
  events: (thing) => <Event {...thing} />,
  quarantine: ({ id, tenant }) => <QuarantineItem tenant={tenant} number={Number(id)} />,
  sources: (thing) => <SourceShown {...thing} />
}

const lists: Readonly<Record<string, () => VNode | null>> = {
  alerts: Alerts,
  attempts: Attempts,
  audit: Audit,
  "dead-letters": DeadLetters,
  deliveries: Deliveries,
  endpoints: Endpoints,
  events: Events,
  jobs: Jobs,
  live: Live,
  outboxes: Outboxes,
  policies: Policies,
  quarantine: Quarantine,
  settings: Settings,
  sources: Sources,
  system: System,
  tokens: Tokens
}

const NoPage = () => (
  <div class="card empty">
    <h1>There is no such page</h1>
    <p>
      Or it is not for this session. <a href={address([])}>Go to the overview</a>
    </p>
  </div>
)

/** The overview, or else the first page that the session may see. */
const Start = () => {
  const to = firstPage()
  useEffect(() => {
    if (to !== undefined && to !== "") go(address([to], { tenant: query.value.tenant }), true)
  }, [to])
  if (to === "") return <Overview />
  return to === undefined ? (
    <div class="card empty">
      <h1>This token is for no page of the console</h1>
    </div>
  ) : null
}

/** Shows what went wrong where a page cannot be drawn, and leaves the others usable. */
const Guarded = ({ children }: { readonly children: ComponentChildren }) => {
  const [error, again] = useErrorBoundary()
  if (error === undefined) return <>{children}</>
  return (
    <>
      <h1>This page cannot be shown</h1>
      <div class="note" role="alert">
        <b aria-hidden="true">■</b>
        <div>
          {String(error)}. That is a defect of Petrel: please report it, with the address of this
          page.{" "}
          <button type="button" onClick={again}>
            Try again
          </button>
        </div>
      </div>
    </>
  )
}

const Page = () => {
  const [name, tenant, id, part] = path.value
  const { endpoint, tenant: own = "*" } = session.value ?? {}
  // A portal for one endpoint begins there.
  if (endpoint !== undefined && id === undefined && shownPage() === "endpoints")
    return <Endpoint tenant={own} id={endpoint} />
  if (name === undefined) return <Start />
  if (!may("endpoints:write") && (tenant === "new" || part === "settings")) return <NoPage />
  if (tenant === undefined) {
    const List = isFor(name) ? named(lists, name) : undefined
    return List === undefined ? <NoPage /> : <List key={name} />
  }
  if (id === undefined) {
    if (name === "endpoints" && tenant === "new") return <NewEndpoint />
    if (name === "sources" && tenant === "new") return <NewSource />
    return name === "start" && isStart(tenant) && kinds[tenant].mayBeSeen() ? (
      <StartJob key={tenant} kind={tenant} />
    ) : (
      <NoPage />
    )
  }
  if (name === "endpoints" && part === "settings")
    return <EditEndpoint key={`${tenant}/${id}`} tenant={tenant} id={id} />
  if (name === "endpoints" && part === "history")
    return <EndpointHistory key={`${tenant}/${id}`} tenant={tenant} id={id} />
  if (name === "jobs" && part !== undefined && isBulkKind(id))
    return <JobPage key={part} tenant={tenant} kind={id} id={part} />
  const thing = part === undefined ? named(things, name) : undefined
  return thing === undefined ? (
    <NoPage />
  ) : (
    <Fragment key={`${name} ${tenant}/${id}`}>{thing({ tenant, id })}</Fragment>
  )
}

/** How soon it is asked again who is logged in, ms. */
const retryMs = 3_000

/** Shown until it is known who is logged in. */
const Loading = () => {
  const why = unknownBecause.value
  useEffect(() => {
    if (why === undefined) return
    const timer = setInterval(() => void readSession(), retryMs)
    return () => clearInterval(timer)
  }, [why])
  if (why === undefined) return <main aria-busy="true">Loading…</main>
  return (
    <main class="login">
      <div class="card">
        <h1>Petrel</h1>
        <p class="bad" role="alert">
          It is not known who is logged in: {why}. This page tries again by itself.
        </p>
        <button type="button" onClick={() => void readSession()}>
          Try now
        </button>
      </div>
    </main>
  )
}

const App = () => {
  const name = shownPage()
  const { brand, endpoint } = session.value ?? {}
  const id = path.value[2] ?? (name === "endpoints" ? endpoint : undefined)
  const title = `${id ?? titleOf(name)} · ${brand?.name ?? "Petrel"}`
  useEffect(() => {
    document.title = title
  }, [title])
  if (name === "login" || session.value === null) return <Login />
  if (session.value === undefined) return <Loading />
  return (
    <Frame>
      <Guarded key={path.value.join("/")}>
        <Page />
      </Guarded>
    </Frame>
  )
}

showTheme()
if (path.value[0] !== "login") void readSession()
render(<App />, document.getElementById("app") as HTMLElement)
