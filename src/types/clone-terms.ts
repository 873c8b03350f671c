/** Purposes that a clone may be made for. */
export const SPECIALIZATIONS = [
  'general',
  'ar',
  'promo',
  'booking',
  'support',
  'analytics',
] as const;

export type Specialization = (typeof SPECIALIZATIONS)[number];

/** Minimum price of a clone in base units of pathUSD. */
export const CLONE_PRICE = 1_000_000n;

export const CLONE_CURRENCY = 'pathUSD';
