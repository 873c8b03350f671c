/** What a clone may be made for. */
export const SPECIALIZATIONS = [
  'general',
  'ar',
  'promo',
  'booking',
  'support',
  'analytics',
] as const;

export type Specialization = (typeof SPECIALIZATIONS)[number];

/** What a clone costs at least: base units of pathUSD. */
export const CLONE_PRICE = 1_000_000n;

export const CLONE_CURRENCY = 'pathUSD';
