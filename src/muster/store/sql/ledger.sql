-- name: select_budgets
SELECT id, cap, reserved, billed, imputed, uncertain FROM budgets WHERE id IN (VALUES (:id)) ORDER BY id

-- name: insert_budget
INSERT INTO budgets (id, cap) VALUES (:id, :cap) ON CONFLICT (id) DO NOTHING

-- name: cap_budget
UPDATE budgets SET cap = :cap WHERE id = :id

-- name: reserve
UPDATE budgets SET reserved = reserved + v.column2
FROM (VALUES (:id, CAST(:amount AS BIGINT))) AS v
WHERE budgets.id = v.column1 AND (cap IS NULL OR billed + imputed + uncertain + reserved + v.column2 <= cap)

-- name: book
UPDATE budgets
SET reserved = reserved - v.column2,
    billed = CASE WHEN billed + v.column3 > 1152921504606846976 THEN 1152921504606846976 ELSE billed + v.column3 END,
    imputed = CASE WHEN imputed + v.column4 > 1152921504606846976 THEN 1152921504606846976 ELSE imputed + v.column4 END,
    uncertain = CASE WHEN uncertain + v.column5 > 1152921504606846976 THEN 1152921504606846976 ELSE uncertain + v.column5 END
FROM (VALUES (:id, CAST(:reserved AS BIGINT), CAST(:billed AS BIGINT), CAST(:imputed AS BIGINT),
              CAST(:uncertain AS BIGINT))) AS v
WHERE budgets.id = v.column1

-- name: restore_budget
INSERT INTO budgets (id, cap, billed, imputed, uncertain) VALUES (:id, :cap, :billed, :imputed, :uncertain)
ON CONFLICT (id) DO UPDATE SET
  billed = CASE WHEN excluded.billed > budgets.billed THEN excluded.billed ELSE budgets.billed END,
  imputed = CASE WHEN excluded.imputed > budgets.imputed THEN excluded.imputed ELSE budgets.imputed END,
  uncertain = CASE WHEN excluded.uncertain > budgets.uncertain THEN excluded.uncertain ELSE budgets.uncertain END

-- name: delete_unused_budget
DELETE FROM budgets WHERE id = :id AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.lineage = :id)
