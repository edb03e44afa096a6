-- name: select_budgets
SELECT id, cap, reserved, billed, imputed, uncertain FROM budgets WHERE id IN (VALUES (:id)) ORDER BY id

-- name: lock_budgets
SELECT id FROM budgets WHERE id IN (VALUES (:id)) ORDER BY id FOR UPDATE

-- name: insert_budget
INSERT INTO budgets (id, cap) VALUES (:id, :cap) ON CONFLICT (id) DO NOTHING

-- name: cap_budget
UPDATE budgets SET cap = :cap WHERE id = :id

-- name: reserve
WITH reservation (id, amount) AS (VALUES (:id, CAST(:amount AS BIGINT)))
UPDATE budgets SET reserved = reserved + reservation.amount FROM reservation
WHERE budgets.id = reservation.id
  AND (cap IS NULL OR billed + imputed + uncertain + reserved + reservation.amount <= cap)

-- name: book
WITH booking (id, reserved, billed, imputed, uncertain) AS (
  VALUES (:id, CAST(:reserved AS BIGINT), CAST(:billed AS BIGINT), CAST(:imputed AS BIGINT),
          CAST(:uncertain AS BIGINT))
)
UPDATE budgets
SET reserved = budgets.reserved - booking.reserved,
    billed = CASE WHEN budgets.billed + booking.billed > 1152921504606846976 THEN 1152921504606846976 ELSE budgets.billed + booking.billed END,
    imputed = CASE WHEN budgets.imputed + booking.imputed > 1152921504606846976 THEN 1152921504606846976 ELSE budgets.imputed + booking.imputed END,
    uncertain = CASE WHEN budgets.uncertain + booking.uncertain > 1152921504606846976 THEN 1152921504606846976 ELSE budgets.uncertain + booking.uncertain END
FROM booking
WHERE budgets.id = booking.id

-- name: restore_budget
INSERT INTO budgets (id, cap, billed, imputed, uncertain) VALUES (:id, :cap, :billed, :imputed, :uncertain)
ON CONFLICT (id) DO UPDATE SET
  billed = CASE WHEN excluded.billed > budgets.billed THEN excluded.billed ELSE budgets.billed END,
  imputed = CASE WHEN excluded.imputed > budgets.imputed THEN excluded.imputed ELSE budgets.imputed END,
  uncertain = CASE WHEN excluded.uncertain > budgets.uncertain THEN excluded.uncertain ELSE budgets.uncertain END

-- name: delete_unused_budget
DELETE FROM budgets WHERE id = :id AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.lineage = :id)

-- name: delete_unused_parts
DELETE FROM budgets WHERE id >= :low AND id < :high AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.lineage = :lineage)

-- name: delete_orphaned_budget
DELETE FROM budgets WHERE id = :id
  AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = :owner)
  AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.lineage = :id)
  AND NOT EXISTS (SELECT 1 FROM run_levels WHERE run_levels.level = :id)

-- name: insert_run_level
INSERT INTO run_levels (level, run_id) VALUES (:level, :run_id)

-- name: delete_run_levels
DELETE FROM run_levels WHERE run_id = :run_id
