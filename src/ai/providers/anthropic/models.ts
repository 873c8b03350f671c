/** Matches `claude-opus-4-6` and `claude-opus-4-20250514`; older models are named `claude-3-5-sonnet-…`. */
const GENERATION = /^claude-[a-z]+-(\d{1,2})(?:-(\d{1,2}))?(?!\d)/;

/** Reports whether a model accepts `temperature` and `top_p`; models since 4.7 refuse both. */
export function takesSampling(model: string): boolean {
  const [, major = '0', minor = '0'] = GENERATION.exec(model) ?? [];
  return Number(major) < 4 || (Number(major) === 4 && Number(minor) < 7);
}
