import * as z from 'zod';

const words = z.array(z.string()).nullish();

const service = z.object({
  image: z.string(),
  command: words,
  entrypoint: words,
  environment: z.record(z.string(), z.string().nullable()).default({}),
  user: z.string().optional(),
  group_add: z.array(z.string()).default([]),
  cap_add: z.array(z.string()).default([]),
  healthcheck: z.object({ test: z.array(z.string()).default([]) }).optional(),
  depends_on: z.record(z.string(), z.object({ condition: z.string() })).default({}),
  volumes: z
    .array(z.object({ type: z.string(), source: z.string().optional(), target: z.string() }))
    .default([]),
});

const project = z.object({ services: z.record(z.string(), service) });

/** A service of docker-compose.yml. */
export type Service = z.infer<typeof service>;

/** Returns the services of a project as Compose prints it, with each dollar sign doubled. */
export function servicesOf(printed: unknown): Readonly<Record<string, Service>> {
  const undoubled: unknown = JSON.parse(JSON.stringify(printed), (_, value: unknown) =>
    typeof value === 'string' ? value.replaceAll('$$', '$') : value,
  );
  return project.parse(undoubled).services;
}

/** Returns the names of jobs: services whose end other services await. */
export function jobsOf(services: Readonly<Record<string, Service>>): ReadonlySet<string> {
  return new Set(
    Object.values(services).flatMap(({ depends_on: dependencies }) =>
      Object.entries(dependencies)
        .filter(([, { condition }]) => condition === 'service_completed_successfully')
        .map(([name]) => name),
    ),
  );
}

/**
 * Starts each service once all that it depends on are up: jobs have ended, others are healthy. All services that can
 * start do so at the same time.
 *
 * @param start resolves when the service is up.
 */
export async function startInOrder(
  services: Readonly<Record<string, Service>>,
  start: (name: string, service: Service) => Promise<void>,
): Promise<void> {
  const up = new Map<string, Promise<void>>();
  const upOf = (name: string): Promise<void> => {
    const known = up.get(name);
    if (known !== undefined) return known;
    const found = services[name];
    if (found === undefined) throw new TypeError(`no service is named ${name}`);
    const begun = Promise.all(Object.keys(found.depends_on).map(upOf)).then(() =>
      start(name, found),
    );
    up.set(name, begun);
    return begun;
  };
  await Promise.all(Object.keys(services).map(upOf));
}
