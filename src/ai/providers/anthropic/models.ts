/** `claude-opus-4-6`, `claude-opus-4-20250514`; older ones are named `claude-3-5-sonnet-…`. */
const GENERATION = /^claude-[a-z]+-(\d{1,2})(?:-(\d{1,2}))?(?!\d)/;

/** Models since 4.7 refuse a request that sets `temperature` or `top_p`. */
export function takesSampling(model: string): boolean {
  const [, major = '0', minor = '0'] = GENERATION.exec(model) ?? [];
  return Number(major) < 4 || (Number(major) === 4 && Number(minor) < 7);
}
